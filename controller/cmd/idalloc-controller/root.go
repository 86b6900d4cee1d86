package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/idalloc/idalloc/controller/internal/reconciler"
	"github.com/idalloc/idalloc/controller/internal/scrape"
	"github.com/idalloc/idalloc/controller/internal/webhook"
	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/connect"
	"github.com/idalloc/idalloc/internal/serve"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
)

const longHelp = `idalloc-controller gives each pod with the label idalloc.dev/assign=controller
an id before its containers start. Such pods wait behind the scheduling gate
idalloc.dev/id. They run nothing of idalloc, and need no right at the API
server.

Several replicas elect one that acts.

Each flag has an environment variable: --namespace is
IDALLOC_CONTROLLER_NAMESPACE. A flag on the command line wins.

Exit codes: 0 done; 1 error; 2 usage; 4 forbidden by RBAC.`

const (
	// off is the address that turns a server off.
	off = "0"
	// mostScrapes is how many scrapes are answered at a time.
	mostScrapes = 8
)

// options are the values of the flags.
type options struct {
	connection        connect.Flags
	log               cli.Log
	namespaces        []string
	kinds             []string
	electionSpace     string
	electionID        string
	elect             bool
	metricsAt, health string
	authentication    bool
	webhook           webhook.Options
}

func newRoot() *cobra.Command {
	environment, o := cli.Prefixed("IDALLOC_CONTROLLER"), &options{}
	root := &cobra.Command{
		Use:               "idalloc-controller",
		Short:             "Give ids to pods before their containers start",
		Long:              longHelp,
		Args:              cli.NoArgs,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return environment.Set(cmd.Flags()) },
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := root.Flags()
	o.log.Bind(f, "1 adds conflicts")
	o.connection.BindKubeconfig(f)
	f.StringSliceVar(&o.namespaces, "namespace", nil, "only namespaces with ids; empty: all")
	f.StringSliceVar(&o.kinds, "kind", nil, "further kinds, such as rollouts.argoproj.io")
	f.BoolVar(&o.elect, "leader-election", true, "elect one of several replicas")
	f.StringVar(&o.electionID, "leader-election-id", "idalloc-controller", "name of the Lease")
	f.StringVar(&o.electionSpace, "leader-election-namespace", "", "namespace of the Lease; empty: that of the pod")
	f.StringVar(&o.metricsAt, "metrics-address", ":8080", "address of /metrics; 0: off")
	f.BoolVar(&o.authentication, "metrics-authentication", false, "ask the API server who may scrape; serve HTTPS")
	f.StringVar(&o.health, "health-address", ":8081", "address of /healthz and /readyz; 0: off")
	f.StringVar(&o.webhook.Name, "webhook", "", "webhook to serve, with a Service and Secret of this name")
	f.IntVar(&o.webhook.Port, "webhook-port", 9443, "port of the webhook")
	f.StringVar(&o.webhook.CertDir, "webhook-certificates", "", "directory of tls.crt and tls.key; empty: make them")
	f.StringVar(&o.webhook.Image, "sidecar-image", "", "sidecar's image that the webhook injects")
	root.AddCommand(newCheck())
	cli.Program(root, version)
	return root
}

func (o *options) run(ctx context.Context) error {
	log, err := o.log.Logger()
	if err != nil {
		return err
	}
	ctrl.SetLogger(log)
	config, namespace, err := o.connection.Config()
	if err != nil {
		return err
	}
	config = connect.Alive(config, 0)
	direct, err := uncached(config)
	if err != nil {
		return err
	}
	served, away, err := reconciler.Served(ctx, direct, o.namespaces, clock.RealClock{})
	if err != nil {
		return err
	}
	known, missing, err := kinds.BuiltIn().Find(direct.RESTMapper(), o.kinds...)
	if err != nil {
		return err
	}
	caches, err := reconciler.CacheOptions(served, known)
	if err != nil {
		return err
	}
	mgr, err := manager.New(config, manager.Options{
		Scheme: scheme.Scheme, Logger: log, Cache: caches,
		Metrics: server.Options{BindAddress: off}, HealthProbeBindAddress: off, // the servers of controller-runtime have no limits
		LeaderElection: o.elect, LeaderElectionID: o.electionID, LeaderElectionNamespace: o.electionSpace, LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return fmt.Errorf("manager: %w", err)
	}
	o.webhook.Namespace = namespace
	if err := metrics.Registry.Register(reconciler.BuildInfo(version)); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	if err := o.serve(ctx, mgr); err != nil {
		return err
	}
	if err := reconciler.Setup(ctx, mgr, config, known, missing, away, metrics.Registry, clock.RealClock{}, log); err != nil {
		return err
	}
	if err := reconciler.Permitted(ctx, direct, direct.RESTMapper(), known, served, clock.RealClock{}); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// uncached returns a client that reads from the API server, and knows its kinds.
func uncached(config *rest.Config) (client.Client, error) {
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, transport)
	if err != nil {
		return nil, fmt.Errorf("kinds: %w", err)
	}
	direct, err := client.New(config, client.Options{HTTPClient: transport, Scheme: scheme.Scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	return direct, nil
}

// serve adds servers for scrapes, probes and the webhook to the manager. Every replica runs them, not only the elected one.
func (o *options) serve(ctx context.Context, mgr manager.Manager) error {
	synced := reconciler.Synced(mgr.GetCache())
	ready := synced
	if o.webhook.Name != "" {
		answers, err := webhook.Setup(ctx, mgr, o.webhook, mgr.GetLogger())
		if err != nil {
			return err
		}
		ready = func(r *http.Request) error { return errors.Join(synced(r), answers(r)) }
	}
	probes, scrapes := http.NewServeMux(), http.NewServeMux()
	probes.Handle("/healthz", healthz.CheckHandler{Checker: healthz.Ping})
	probes.Handle("/readyz", healthz.CheckHandler{Checker: ready})
	// Each compressed answer takes almost a megabyte.
	answer := promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{DisableCompression: true, MaxRequestsInFlight: mostScrapes})
	var secure *tls.Config
	if o.authentication {
		var err error
		if answer, err = scrape.Permitted(mgr.GetConfig(), mgr.GetLogger(), answer); err != nil {
			return fmt.Errorf("--metrics-authentication: %w", err)
		}
		if secure, err = scrape.TLS(); err != nil {
			return fmt.Errorf("--metrics-authentication: %w", err)
		}
	}
	scrapes.Handle("/metrics", answer)
	for _, s := range []struct {
		flag, address string
		handler       http.Handler
		tls           *tls.Config
	}{{"health-address", o.health, probes, nil}, {"metrics-address", o.metricsAt, scrapes, secure}} {
		if s.address == off {
			continue
		}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.address)
		if err != nil {
			return fmt.Errorf("--%s: %w", s.flag, err)
		}
		if s.tls != nil {
			listener = tls.NewListener(listener, s.tls)
		}
		if err := mgr.Add(&manager.Server{Name: s.flag, Server: serve.Bounded(s.handler), Listener: listener}); err != nil {
			return fmt.Errorf("--%s: %w", s.flag, err)
		}
	}
	return nil
}
