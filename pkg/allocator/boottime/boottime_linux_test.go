package boottime

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A boot that is not known for sure must not be taken for the one that another process saw.
func TestABootThatCannotBeIdentified(t *testing.T) {
	for name, tc := range map[string]struct {
		boot      string // "" for no file
		namespace func(path string) error
		want      string
	}{
		"a boot and a time namespace":           {boot: "b00t\n", namespace: func(path string) error { return os.Symlink("time:[42]", path) }, want: "b00t time:[42]"},
		"a kernel without time namespaces":      {boot: "b00t\n", want: "b00t "},
		"no boot":                               {namespace: func(path string) error { return os.Symlink("time:[42]", path) }},
		"an empty boot":                         {boot: "\n", namespace: func(path string) error { return os.Symlink("time:[42]", path) }},
		"a time namespace that cannot be known": {boot: "b00t\n", namespace: func(path string) error { return os.WriteFile(path, nil, 0o600) }},
	} {
		t.Run(name, func(t *testing.T) {
			proc := t.TempDir()
			boot, namespace := filepath.Join(proc, "sys", "kernel", "random", "boot_id"), filepath.Join(proc, "self", "ns", "time")
			for _, path := range []string{boot, namespace} {
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if tc.boot != "" {
				if err := os.WriteFile(boot, []byte(tc.boot), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if tc.namespace != nil {
				if err := tc.namespace(namespace); err != nil {
					t.Fatal(err)
				}
			}
			if got := bootOf(proc); got != tc.want {
				t.Errorf("the boot is %q, want %q", got, tc.want)
			}
		})
	}
}

// A process that may open no more files waits all the same.
func TestWaitWithoutAFreeFileDescriptor(t *testing.T) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	until := Now() + 20*time.Millisecond
	Wait(until, nil)
	now := Now()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if now < until {
		t.Errorf("it ended %s early", until-now)
	}
}
