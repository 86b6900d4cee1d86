package idalloc

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
)

const thisPod = "worker-0"

func TestTheZeroLogIsSlogsDefault(t *testing.T) {
	var out bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	given := Options{PodName: thisPod, PodNamespace: "shop", Config: &rest.Config{}}
	o, err := given.complete()
	if err != nil {
		t.Fatal(err)
	}
	o.Log.Info("waiting for a slot", "reason", "none is free")
	if !strings.Contains(out.String(), "waiting for a slot") {
		t.Errorf("slog has %q", out.String())
	}
	out.Reset()
	given.Log = logr.FromSlogHandler(slog.DiscardHandler)
	if o, err = given.complete(); err != nil {
		t.Fatal(err)
	}
	o.Log.Info("waiting for a slot")
	if out.Len() > 0 {
		t.Errorf("a log that discards goes to slog: %q", out.String())
	}
}

func TestWhichPodThisIs(t *testing.T) {
	type pod struct{ name, namespace, uid string }
	env := pod{thisPod, "shop", "u"}
	for name, tc := range map[string]struct {
		given, env, want pod
		fails            bool
	}{
		"the environment's":                     {env: env, want: env},
		"the environment's, by name":            {given: pod{name: thisPod}, env: env, want: env},
		"another one":                           {given: pod{name: "worker-1"}, env: env, want: pod{"worker-1", "shop", ""}},
		"another one, with its UID":             {given: pod{"worker-1", "other", "v"}, env: env, want: pod{"worker-1", "other", "v"}},
		"the environment's, with another UID":   {given: pod{uid: "v"}, env: env, want: pod{thisPod, "shop", "v"}},
		"one whose name is not said":            {env: pod{namespace: "shop"}, fails: true},
		"one whose namespace is not said":       {env: pod{name: thisPod}, fails: true},
		"one that is given without environment": {given: env, want: env},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("POD_NAME", tc.env.name)
			t.Setenv("POD_NAMESPACE", tc.env.namespace)
			t.Setenv("POD_UID", tc.env.uid)
			o, err := Options{PodName: tc.given.name, PodNamespace: tc.given.namespace, PodUID: tc.given.uid, Config: &rest.Config{}}.complete()
			if tc.fails {
				if err == nil || !strings.Contains(err.Error(), "POD_NAME and POD_NAMESPACE") {
					t.Errorf("%+v, %v", o, err)
				}
				return
			}
			if got := (pod{o.PodName, o.PodNamespace, o.PodUID}); err != nil || got != tc.want {
				t.Errorf("%+v, %v, want %+v", got, err, tc.want)
			}
		})
	}
}

func TestTheDefaultOptions(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("HOME", t.TempDir())
	given := Options{PodName: thisPod, PodNamespace: "shop"}
	t.Setenv("KUBECONFIG", "")
	if err := Run(t.Context(), given, nil); err == nil || !strings.HasPrefix(err.Error(), "idalloc: no kubeconfig names a cluster") {
		t.Errorf("without an API server: %v", err)
	}
	path := filepath.Join(t.TempDir(), "config")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: 'https://ambient.example'}}]\ncontexts: [{name: c, context: {cluster: c}}]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", path)
	o, err := given.complete()
	if err != nil || o.Config == nil || o.Config.Host != "https://ambient.example" || o.ReleaseTimeout != 10*time.Second {
		t.Errorf("%+v, %v", o, err)
	}
	given.Config, given.ReleaseTimeout = &rest.Config{Host: "https://given.example"}, time.Minute
	if o, err = given.complete(); err != nil || o.Config != given.Config || o.ReleaseTimeout != time.Minute {
		t.Errorf("%+v, %v", o, err)
	}
}
