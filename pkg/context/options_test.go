package context

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
)

func TestTheZeroLogIsSlogsDefault(t *testing.T) {
	var out bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	given := Options{PodName: "worker-0", PodNamespace: "shop", Config: &rest.Config{}}
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

func TestAKeyOfIdallocsOwnIsRefused(t *testing.T) {
	for key, good := range map[string]bool{"": true, "example.com/ids": true, "idalloc.dev/seal": false, "a b": false} {
		o := Options{PodName: "worker-0", PodNamespace: "shop", Config: &rest.Config{Host: "http://127.0.0.1:1"}, AnnotationKey: key}
		if _, err := o.store(); good != (err == nil) {
			t.Errorf("AnnotationKey %q: %v", key, err)
		}
	}
}
