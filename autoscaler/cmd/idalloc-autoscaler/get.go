package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/idalloc/idalloc/autoscaler/internal/source/web"
	"github.com/idalloc/idalloc/autoscaler/internal/state"
	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/commands"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

type getter struct {
	*global
	*commands.Output

	address    string
	port       int
	partitions bool
}

func newGet(all *global) *cobra.Command {
	g := &getter{global: all}
	cmd := &cobra.Command{
		Use:   "get KIND/NAME",
		Short: "Show loads, and what the autoscaler decides and why",
		Long: `Asks the autoscaler that leads for what it sees: the load of each id, or of each
partition with --partitions, how many pods there are and should be, and why it
acts or does not. A partition of which nothing is known has the load "?".

The leader is the pod that the Lease names. It is asked through the API server,
which needs the verbs get on leases and get on pods/proxy. An autoscaler without
a Lease is asked at --url. It answers only on its own loopback, so run this
beside it, or forward a port.`,
		Example: "  idalloc-autoscaler get deployment/worker -n prod --partitions",
		Args:    cobra.RangeArgs(0, 2),
		RunE:    g.run,
	}
	f := cmd.Flags()
	g.Output = commands.NewOutput(cmd, commands.Plain())
	f.BoolVar(&g.partitions, "partitions", false, "show a row for each partition")
	f.IntVar(&g.port, "port", 8080, "port of the autoscaler's --http-address")
	f.StringVar(&g.address, "url", "", "address of an autoscaler, in place of a workload")
	return cmd
}

func (g *getter) run(cmd *cobra.Command, args []string) error {
	if err := g.Check(); err != nil {
		return err
	}
	s, err := g.ask(cmd.Context(), args)
	if err != nil {
		return err
	}
	if g.ForPeople() {
		return s.Table(cmd.OutOrStdout(), time.Now(), g.partitions)
	}
	return g.Items(cmd.OutOrStdout(), false, commands.Item{Kind: "State", Data: s})
}

func (g *getter) ask(ctx context.Context, args []string) (s state.State, err error) {
	if g.address != "" {
		if len(args) > 0 {
			return s, cli.Usagef("--url: the autoscaler at that address knows its workload: leave out KIND/NAME")
		}
		address, err := web.Parse(g.address)
		if err != nil {
			return s, cli.Usagef("--url: %w", err)
		}
		err = web.Server{URL: address}.Get(ctx, state.Path, nil, &s)
		return s, err
	}
	ref, config, err := connectTo(&g.Flags, args)
	if err != nil {
		return s, err
	}
	client, err := coordination.NewForConfig(config)
	if err != nil {
		return s, err
	}
	holder, err := leader(ctx, client, ref)
	if err != nil {
		return s, err
	}
	pod, key := state.Holder(holder)
	if len(validation.IsDNS1123Subdomain(pod)) > 0 { // it becomes part of a URL, and the request has a person's rights
		return s, fmt.Errorf("the holder of Lease %s in namespace %s is %q, which is not the name of a pod: ask the autoscaler at its address with --url", leaseName(ref), ref.Namespace, pod)
	}
	body, err := viaProxy(ctx, client.RESTClient(), ref.Namespace, pod, g.port, key)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(body, &s); err != nil {
		return s, fmt.Errorf("pod %s answers at port %d what cannot be read: use the port of its --http-address: %w", pod, g.port, err)
	}
	return s, nil
}

// leader returns the identity in the Lease of a workload's autoscalers.
func leader(ctx context.Context, client coordination.LeasesGetter, ref kinds.Ref) (string, error) {
	name := leaseName(ref)
	lease, err := client.Leases(ref.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", fmt.Errorf("no autoscaler of %s has led in namespace %s: Lease %s does not exist; ask one that needs no Lease with --url", ref, ref.Namespace, name)
	case apierrors.IsForbidden(err):
		return "", request.Forbidden("get", schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, ref.Namespace, name, err)
	case err != nil:
		return "", fmt.Errorf("get Lease %s in namespace %s: %w", name, ref.Namespace, err)
	case lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "":
		return "", fmt.Errorf("no autoscaler of %s leads now: see the log of its pods", ref)
	}
	return *lease.Spec.HolderIdentity, nil
}

// viaProxy sends a request to a pod through the API server.
func viaProxy(ctx context.Context, client rest.Interface, namespace, pod string, port int, key string) ([]byte, error) {
	body, err := client.Get().AbsPath("/api/v1/namespaces", namespace, "pods", pod+":"+strconv.Itoa(port), "proxy"+state.Path).SetHeader(state.KeyHeader, key).DoRaw(ctx)
	status := apierrors.APIStatus(nil)
	switch {
	case err == nil:
		return body, nil
	case apierrors.IsForbidden(err):
		return nil, request.Forbidden("get", schema.GroupVersionResource{Version: "v1", Resource: "pods/proxy"}, namespace, pod, err)
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("the leader calls itself %s, which is no pod of namespace %s: ask it at its address with --url: %w", pod, namespace, err)
	case errors.As(err, &status) && status.Status().Code == http.StatusServiceUnavailable:
		return nil, fmt.Errorf("pod %s does not answer at port %d, or has not read the workload yet: %q: %w", pod, port, body, err)
	}
	return nil, fmt.Errorf("ask pod %s in namespace %s at port %d: %q: %w", pod, namespace, port, body, err)
}
