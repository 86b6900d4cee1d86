package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/idalloc/idalloc/internal/cli"
)

// worker is a workload.
const worker = "deployment/worker"

// called runs the command and returns what it printed.
func called(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := newRoot()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// good are flags with which run gets as far as the API server.
func good(more ...string) []string {
	return append([]string{"run", worker, "--kubeconfig=/none", "--http-address=", "--capacity=100", "--max-replicas=20", "--source=prometheus", "--source-url=http://x", "--prometheus-query=q"}, more...)
}

func TestUsageErrorsNameTheFlag(t *testing.T) {
	for want, args := range map[string][]string{
		"--capacity 0":                       {"run", worker, "--source=prometheus"},
		"--capacity NaN":                     good("--capacity=NaN"),
		"--margin 100":                       good("--margin=100"),
		"--spare 1":                          good("--spare=1"),
		"--min-replicas 0":                   good("--min-replicas=0"),
		"--max-replicas 2":                   good("--min-replicas=3", "--max-replicas=2"),
		"--max-replicas 0: say how many":     good("--max-replicas=0"),
		"--max-age 9s: use at least":         good("--period=10s", "--max-age=9s"),
		"use at least --period 2m0s":         {"plan", "--capacity=1", "--from=x", "--max-replicas=1", "--period=2m"},
		"is sent over https alone":           good("--source-token-file=x"),
		"begins with https":                  good("--source-ca-file=" + certificate(t)),
		"needs --source-password-file":       good("--source-user=x"),
		"needs --source-key-file":            good("--source-cert-file=x"),
		"has no certificate in PEM":          good("--source-url=https://x", "--source-ca-file=/dev/null"),
		"with --kafka-sasl how":              good("--source=kafka", "--kafka-brokers=x:1", "--kafka-topic=t", "--source-user=x"),
		"plain sends the password as it is":  good("--source=kafka", "--kafka-brokers=x:1", "--kafka-topic=t", "--kafka-sasl=plain"),
		"scram-sha-256 needs --source-user":  good("--source=kafka", "--kafka-brokers=x:1", "--kafka-topic=t", "--kafka-sasl=scram-sha-256"),
		"--kafka-sasl \"x\": use plain":      good("--source=kafka", "--kafka-brokers=x:1", "--kafka-topic=t", "--kafka-sasl=x", "--source-user=x", "--source-password-file=/dev/null"),
		"add --kafka-tls":                    good("--source=kafka", "--kafka-brokers=x:1", "--kafka-topic=t", "--source-ca-file="+certificate(t)),
		"--every 0s":                         good("--every=0"),
		"--max-age -1s":                      good("--max-age=-1s"),
		"--period 0s":                        good("--period=0s"),
		"--smooth -1s":                       good("--smooth=-1s"),
		"--period 1m0s: use at most twice":   good("--source=kafka", "--kafka-brokers=x:1", "--kafka-topic=t", "--period=1m", "--window=29s"),
		"--catch-up 10m0s: nothing says how": good("--catch-up=10m"),
		"--source=kafka with --kafka-group":  good("--source=kafka", "--kafka-brokers=x:1", "--kafka-topic=t", "--kafka-measure=records", "--catch-up=10m"),
		"--source \"x\"":                     good("--source=x"),
		"--source-url":                       good("--source-url=x"),
		"needs --prometheus-query":           good("--prometheus-query="),
		"needs --rabbitmq-prefix":            good("--source=rabbitmq"),
		"needs --kafka-brokers":              good("--source=kafka"),
		"--kafka-measure \"x\"":              good("--source=kafka", "--kafka-brokers=x:1", "--kafka-topic=t", "--kafka-measure=x"),
		"add --kafka-measure=records":        good("--source=kafka", "--kafka-brokers=x:1", "--kafka-topic=t", "--kafka-group=g"),
		"--prometheus-query: write {topic}":  good("--topics-file=x"),
		"--rabbitmq-prefix: write {topic}":   good("--source=rabbitmq", "--rabbitmq-prefix=orders-P", "--topics-file=x"),
		"--kafka-topic has {topic}, and no":  good("--source=kafka", "--kafka-brokers=x:1", "--kafka-topic={topic}"),
		"--source prometheus: nothing says":  {"measure", worker, "--source=prometheus"},
		"--source kafka: nothing says":       {"measure", worker, "--source=kafka"},
		"--for 1s, --period 5s":              {"measure", worker, "--source=kafka", "--for=1s"},
		"--for 40s: RabbitMQ counts":         {"measure", worker, "--source=rabbitmq", "--for=40s"},
		"--log-format \"x\"":                 good("--log-format=x"),
		"-v 11":                              good("-v=11"),
		"name one workload":                  slices.Delete(good(), 1, 2),
		"is not KIND/NAME":                   slices.Replace(good(), 1, 2, "worker"),
		"unknown flag: --x":                  good("--x"),
		"--window 10s":                       good("--source=rabbitmq", "--rabbitmq-prefix=orders-P", "--window=10s"),
		"counts messages each 1m0s":          good("--source=rabbitmq", "--rabbitmq-prefix=orders-P", "--rabbitmq-interval=1m"),
		"--rabbitmq-interval 0s":             good("--source=rabbitmq", "--rabbitmq-prefix=orders-P", "--rabbitmq-interval=0s"),
		"-o \"xml\"":                         {"get", worker, "-o=xml"},
		"leave out KIND/NAME":                {"get", worker, "--url=http://x"},
		"--url: this is no address":          {"get", "--url=x"},
		"--from: name a file":                {"plan", "--capacity=1"},
		"--pods 0":                           {"plan", "--capacity=1", "--from=x", "--pods=0"},
		"--period 0s, --join 20s, --move 5s": {"plan", "--capacity=1", "--from=x", "--period=0s"},
	} {
		_, err := called(t, args...)
		if err == nil || !strings.Contains(err.Error(), want) || cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("%v: exit code %d, %v; want %q", args, cli.ExitCode(err), err, want)
		}
	}
}

func TestACapacityThatIsNoneIsNotAMarginThatIsTooLarge(t *testing.T) {
	if _, err := called(t, good("--capacity=0")...); err == nil || strings.Contains(err.Error(), "--margin") {
		t.Error(err)
	}
}

func TestAFlagHasAnEnvironmentVariable(t *testing.T) {
	t.Setenv("IDALLOC_AUTOSCALER_MAX_AGE", "soon")
	if _, err := called(t, good()...); err == nil || !strings.Contains(err.Error(), "environment variable IDALLOC_AUTOSCALER_MAX_AGE") || cli.ExitCode(err) != cli.ExitUsage {
		t.Errorf("%v", err)
	}
	if _, err := called(t, good("--max-age=1m")...); err == nil || strings.Contains(err.Error(), "MAX_AGE") {
		t.Errorf("a flag on the command line does not win: %v", err)
	}
	help, err := called(t, "--help")
	if err != nil || !strings.Contains(help, "IDALLOC_AUTOSCALER_MAX_AGE") {
		t.Errorf("the help does not name the variable: %v", err)
	}
	if help, err = called(t, "plan", "--help"); err != nil || strings.Contains(help, "--certificate-authority") {
		t.Errorf("the help has flags that are not the command's: %v\n%s", err, help)
	}
}

func TestAPlanPrintsWhatWouldBeDone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "loads.csv")
	if err := os.WriteFile(path, []byte("seconds,0,1,2,3\n0,10,10,10,10\n600,60,60,60,60\n1800,10,10,10,10\n3600,10,10,10,10\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := called(t, "plan", "--from", path, "--capacity", "100", "--max-replicas", "20")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "autoscaling.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), out) {
		t.Errorf("the page does not show what is printed:\n%s", out)
	}
	if _, err := called(t, "plan", "--from", filepath.Join(t.TempDir(), "none"), "--capacity", "100", "--max-replicas", "20"); err == nil || cli.ExitCode(err) != cli.ExitError {
		t.Errorf("a file that does not exist: %v", err)
	}
}
