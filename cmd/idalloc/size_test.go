package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// heavy are packages, with all below them, that the binary had no use for or that would double it:
// typed clients and their API groups, discovery and its schemas, profiling, HTML.
var heavy = []string{ //nolint:gochecknoglobals // a constant that Go cannot express
	"expvar",
	"github.com/google/gnostic-models",
	"github.com/onsi",
	"google.golang.org/grpc",
	"google.golang.org/protobuf",
	"html/template",
	"k8s.io/api",
	"k8s.io/apiextensions-apiserver",
	"k8s.io/client-go/applyconfigurations",
	"k8s.io/client-go/discovery",
	"k8s.io/client-go/informers",
	"k8s.io/client-go/kubernetes",
	"k8s.io/client-go/listers",
	"k8s.io/client-go/restmapper",
	"k8s.io/kube-openapi/pkg/util/proto",
	"net/http/pprof",
	"sigs.k8s.io/controller-runtime",
	"sigs.k8s.io/structured-merge-diff/v6/typed",
	"testing",
}

func TestTheBinaryImportsNothingHeavy(t *testing.T) {
	list, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range strings.FieldsSeq(string(list)) {
		for _, h := range heavy {
			if pkg == h || strings.HasPrefix(pkg, h+"/") {
				t.Errorf("the binary, which runs beside every pod, imports %s: see go mod why -m, and use the dynamic or REST client", pkg)
			}
		}
	}
}

// The limit is in bytes, for the build of make build. A call of reflect.Value.MethodByName that the
// linker cannot see through also shows here: it keeps every exported method of every type.
func TestTheBinaryIsSmall(t *testing.T) {
	const most = 14_400_000
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the limit is that of linux/amd64")
	}
	binary := filepath.Join(t.TempDir(), "idalloc")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-tags", "nethttpomithttp2", "-ldflags", "-s -w", "-o", binary, ".") //nolint:gosec // the project's own command
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > most {
		t.Errorf("the binary has %d bytes, more than %d: see go tool nm -size -sort size", info.Size(), most)
	}
}
