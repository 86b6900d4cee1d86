package controlplane

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
)

func (c *ControlPlane) startEtcd(ctx context.Context) error {
	client, peer := "http://"+local(c.ports.etcd), "http://"+local(c.ports.etcdPeer)
	_, err := c.run(ctx, "etcd", client+"/health", &http.Client{Timeout: probeTimeout},
		"--data-dir="+c.path("etcd"),
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer,
		"--unsafe-no-fsync", // nothing here has to survive a power cut
		"--log-level=warn",
	)
	return err
}

// StartAPIServer starts the API server, on the port it always had, and returns
// when /readyz answers and controllers that saw an outage have been replaced:
// each of their watches would come back after a back-off of up to a minute, and
// no flag shortens it. Start has called it once; call it after KillAPIServer.
func (c *ControlPlane) StartAPIServer(ctx context.Context) error {
	if err := c.startAPIServer(ctx); err != nil || c.controllers == nil {
		return err
	}
	c.controllers.process.Kill()
	<-c.controllers.process.Done()
	return c.startControllers(ctx)
}

func (c *ControlPlane) startAPIServer(ctx context.Context) error {
	if c.api != nil {
		return errors.New("the API server is running already")
	}
	// HTTPClientFor would cache the transport; a restarted server needs a new connection.
	config := c.Config()
	config.Timeout = probeTimeout
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	pki := c.authority.path
	c.api, err = c.run(ctx, "kube-apiserver", c.url()+"/readyz", client,
		"--etcd-servers=http://"+local(c.ports.etcd),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", c.ports.api),
		"--tls-cert-file="+pki("api.crt"), "--tls-private-key-file="+pki("api.key"), "--client-ca-file="+pki("ca.crt"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+pki("sa.key"), "--service-account-signing-key-file="+pki("sa.key"),
		"--service-cluster-ip-range=10.0.0.0/24", "--endpoint-reconciler-type=none",
		"--allow-privileged=true",
		"--shutdown-delay-duration=0s", "--profiling=false",
	)
	return err
}

// KillAPIServer kills the API server with SIGKILL and returns when it is gone.
// etcd and the controllers run on. It does nothing when the server is down.
func (c *ControlPlane) KillAPIServer() {
	if c.api == nil {
		return
	}
	c.api.process.Kill()
	<-c.api.process.Done()
	c.api = nil
	c.log.V(1).Info("killed", "program", "kube-apiserver")
}

func (c *ControlPlane) startControllers(ctx context.Context) error {
	kubeconfig, err := c.Kubeconfig(Admin)
	if err != nil {
		return err
	}
	pki := c.authority.path
	// The certificate that the program makes for itself is not worth checking: only health is read.
	insecure := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // see above
	defer insecure.CloseIdleConnections()
	client := &http.Client{Timeout: probeTimeout, Transport: insecure}
	c.controllers, err = c.run(ctx, "kube-controller-manager", "https://"+local(c.ports.controllers)+"/healthz", client,
		"--kubeconfig="+kubeconfig,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", c.ports.controllers),
		"--authorization-always-allow-paths=/healthz",
		"--service-account-private-key-file="+pki("sa.key"), "--root-ca-file="+pki("ca.crt"),
		"--leader-elect=false", "--allocate-node-cidrs=false",
		"--kube-api-qps=1000", "--kube-api-burst=2000",
		"--concurrent-deployment-syncs=10", "--concurrent-replicaset-syncs=10", "--concurrent-namespace-syncs=20",
		"--node-monitor-grace-period=24h", "--node-startup-grace-period=24h", // no kubelet sends heartbeats
		"--profiling=false",
	)
	return err
}

func (c *ControlPlane) url() string { return "https://" + local(c.ports.api) }
