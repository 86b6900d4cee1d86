package controlplane

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"time"

	"github.com/idalloc/idalloc/test/envtest/process"
)

const (
	// startTimeout is generous: two cores take ten seconds, and minutes with much else to do. Without a server all that
	// follows fails.
	startTimeout = 5 * time.Minute
	// probeTimeout is for one look at a server's health.
	probeTimeout = 10 * time.Second
	pollPeriod   = 50 * time.Millisecond
)

// program is one of the three servers.
type program struct {
	name    string
	logPath string
	process *process.Process
}

// run starts a program and waits until its health address answers 200.
func (c *ControlPlane) run(ctx context.Context, name, health string, client *http.Client, args ...string) (*program, error) {
	p := &program{name: name, logPath: c.path("log", name+".log")}
	log, err := os.OpenFile(p.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor

	//nolint:gosec,noctx // the program is this package's choice, and it outlives ctx
	cmd := exec.Command(c.options.Assets+"/"+name, args...)
	cmd.Stdout, cmd.Stderr = log, log
	begin := time.Now()
	if p.process, err = c.group.Start(cmd); err != nil {
		return nil, err
	}
	if err := p.await(ctx, client, health); err != nil {
		p.process.Kill()
		<-p.process.Done()
		return nil, err
	}
	c.log.V(1).Info("started", "program", name, "pid", p.process.Pid(), "took", time.Since(begin).Round(time.Millisecond).String())
	return p, nil
}

func (p *program) await(ctx context.Context, client *http.Client, health string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(pollPeriod)
	defer tick.Stop()
	for {
		last := probe(ctx, client, health)
		if last == nil {
			return nil
		}
		select {
		case <-p.process.Done():
			return fmt.Errorf("%s ended with exit code %d, see %s", p.name, p.process.ExitCode(), p.logPath)
		case <-ctx.Done():
			return fmt.Errorf("%s did not get healthy (%w), see %s", p.name, last, p.logPath)
		case <-tick.C:
		}
	}
}

func probe(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return nil
}
