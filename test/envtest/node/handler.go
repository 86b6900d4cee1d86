package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var errUnknownHandler = errors.New("the process node knows only exec and httpGet")

// preStop runs the container's preStop hook, if it runs and has one. The hook is
// cut off when the grace period is over.
func (c *container) preStop() {
	defer close(c.hooked)
	if c.spec.Lifecycle == nil || c.spec.Lifecycle.PreStop == nil || c.running() == nil {
		return
	}
	ctx, cancel := context.WithCancel(c.pod.node.ctx)
	defer cancel()
	go func() {
		select {
		case <-c.pod.killed:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := errUnknownHandler
	if hook := c.spec.Lifecycle.PreStop.Exec; hook != nil {
		err = c.exec(ctx, hook.Command)
	}
	if err != nil {
		c.pod.log.Error(err, "preStop hook failed", "container", c.spec.Name)
	}
}

// exec runs a command in the container's surroundings.
func (c *container) exec(ctx context.Context, argv []string) error {
	cmd, err := c.commandOf(argv)
	if err != nil {
		return err
	}
	child, err := c.pod.node.group.Start(cmd)
	if err != nil {
		return err
	}
	select {
	case <-child.Done():
	case <-ctx.Done():
		child.Kill()
		<-child.Done()
		return ctx.Err()
	}
	if code := child.ExitCode(); code != 0 {
		return fmt.Errorf("%s: exit code %d", argv[0], code)
	}
	return nil
}

func (c *container) httpGet(ctx context.Context, action *corev1.HTTPGetAction) error {
	address, err := c.endpoint(action.Host, action.Port)
	if err != nil {
		return err
	}
	url := "http://" + address + "/" + strings.TrimPrefix(action.Path, "/")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	// A connection for each probe, as a kubelet has.
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode < 200 || response.StatusCode >= 400 {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return nil
}

// endpoint returns host:port; no host means the pod's address.
func (c *container) endpoint(host string, port intstr.IntOrString) (string, error) {
	if host == "" {
		host = c.pod.address
	}
	if port.Type == intstr.Int {
		return net.JoinHostPort(host, port.String()), nil
	}
	for _, p := range c.spec.Ports {
		if p.Name == port.StrVal {
			return net.JoinHostPort(host, strconv.Itoa(int(p.ContainerPort))), nil
		}
	}
	return "", fmt.Errorf("container %s has no port named %q", c.spec.Name, port.StrVal)
}
