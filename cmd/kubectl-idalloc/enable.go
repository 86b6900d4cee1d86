package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/idalloc/idalloc/internal/check"
	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/enable"
	"github.com/idalloc/idalloc/internal/inject"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

type enabler struct {
	changer

	options       enable.Options
	withoutPolicy bool
}

func newEnable(g *global) *cobra.Command {
	e := &enabler{changer: changer{global: g}}
	cmd := &cobra.Command{
		Use:   "enable KIND/NAME",
		Short: "Give a workload an account and the label that brings the sidecar",
		Long: `Makes a service account, a Role and a RoleBinding for one workload, and asks for
the sidecar by the label idalloc.dev/inject on its pod template, so the workload
rolls. A workload whose pods have an account of their own keeps it, and the Role
is bound to it. The policies of config/inject add the sidecar. With --by=agent
the controller plans for the pods, and their account has no right on the
workload. It makes no account while the cluster lacks the policies of
config/policy, which limit it, unless you say --without-policy. With
--dry-run=client -o yaml it prints what it would apply.`,
		Example: `  kubectl idalloc enable deployment/worker -n prod
  kubectl idalloc enable deploy/worker --dry-run=client -o yaml`,
		ValidArgsFunction: g.completeAny,
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().BoolVar(&e.options.AccountOnly, "account-only", false, "leave the pod template as it is")
	cmd.Flags().StringVar(&e.options.By, "by", "", "sidecar (the pods plan) or agent (the controller plans)")
	cmd.Flags().BoolVar(&e.options.Strict, "strict", false, "let the account write Leases, for strict mode")
	cmd.Flags().BoolVar(&e.withoutPolicy, "without-policy", false, "make the account although no policy limits it")
	e.bind(cmd)
	return cmd
}

func (e *enabler) run(ctx context.Context, args []string, out, errs io.Writer) error {
	if err := e.check(); err != nil {
		return err
	}
	switch by := e.options.By; by {
	case "", inject.BySidecar, inject.ByAgent:
	case inject.ByController:
		return cli.Usagef("--by is %q: that way needs no account; set label %s: %s in the pod template", by, inject.AssignLabel, by)
	default:
		return cli.Usagef("--by is %q: use %s or %s", by, inject.BySidecar, inject.ByAgent)
	}
	s, ref, err := e.one(args)
	if err != nil {
		return err
	}
	whole, err := s.GetWhole(ctx, ref)
	if err != nil {
		return err
	}
	owner, err := s.GetOwner(ctx, ref)
	if err != nil {
		return err
	}
	plan, err := enable.For(ref, whole, e.options)
	if err != nil {
		return err
	}
	if missing := check.PolicyMissing(ctx, s); missing != "" {
		if e.dryRun == "none" && !e.withoutPolicy {
			return fmt.Errorf("%s, or say --without-policy", missing)
		}
		plan.Notes = append(plan.Notes, missing)
	}
	if missing := check.ControllerMissing(ctx, s, ref.Namespace); missing != "" && plan.PeersRole != "" {
		plan.Notes = append(plan.Notes, missing)
	}
	plan.Notes = append(plan.Notes, shares(ctx, s, ref.Namespace, plan)...)
	if !e.options.AccountOnly {
		plan.Notes = append(plan.Notes, cautions(ctx, s, owner)...)
	}
	if err := say(errs, plan.Notes); err != nil {
		return err
	}
	done := make([]*unstructured.Unstructured, 0, len(plan.Objects))
	for _, o := range plan.Objects {
		applied, err := e.apply(ctx, s, o)
		if err != nil {
			return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
		done = append(done, applied)
	}
	return e.print(out, "applied", done)
}

// shares warns about other workloads that the account may already write. It returns nothing if it may not read that.
func shares(ctx context.Context, s *store.Store, namespace string, plan enable.Plan) []string {
	read := func(resource string) (all []unstructured.Unstructured) {
		gvr := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: resource}
		err := s.EachObject(ctx, gvr, namespace, metav1.ListOptions{}, func() { all = nil }, func(o *unstructured.Unstructured) { all = append(all, *o) })
		if err != nil {
			return nil
		}
		return all
	}
	return plan.Shared(read("rolebindings"), read("roles"))
}

// cautions returns what the user should know before the workload rolls.
func cautions(ctx context.Context, s *store.Store, owner store.Owner) []string {
	var notes []string
	// Each way to inject has this policy, before Kubernetes 1.36 too. That of a tenant has the name of its release.
	bindings, injects := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"}, false
	err := s.EachObject(ctx, bindings, "", metav1.ListOptions{}, func() { injects = false }, func(o *unstructured.Unstructured) {
		injects = injects || strings.HasSuffix(o.GetName(), "-inject") && o.GetLabels()["app.kubernetes.io/name"] == "idalloc"
	})
	if err == nil && !injects {
		notes = append(notes, "the cluster has no policy idalloc-inject, so the label does nothing: let an administrator run kubectl apply -k config/inject, or put the sidecar into the manifest with kubectl idalloc inject")
	}
	if owner.Rolls() && owner.Rollout.Blocks() {
		notes = append(notes, fmt.Sprintf("the workload's maxUnavailable is 0, so later rolling updates wait for ever unless the pods hand their ids over: set maxSurge: 0 and maxUnavailable: 1 in %s, or a drain hook", owner.Ref))
	}
	return notes
}

// apply applies an object. If nothing should be sent, it returns the object unchanged.
func (e *enabler) apply(ctx context.Context, s *store.Store, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if e.dryRun == "client" {
		return o, nil
	}
	gvk := o.GroupVersionKind()
	resource := map[string]string{"ServiceAccount": "serviceaccounts", "Role": "roles", "RoleBinding": "rolebindings"}[gvk.Kind]
	if resource == "" {
		ref, ok := kinds.NewRef(o.GetAPIVersion(), o.GetKind(), o.GetNamespace(), o.GetName())
		if !ok {
			return nil, errors.New("this kind is not applied")
		}
		resource = ref.GVR().Resource
	}
	options := metav1.ApplyOptions{FieldManager: enable.FieldManager, DryRun: e.stores()}
	return s.Dynamic.Resource(gvk.GroupVersion().WithResource(resource)).Namespace(o.GetNamespace()).Apply(ctx, o.GetName(), o, options)
}
