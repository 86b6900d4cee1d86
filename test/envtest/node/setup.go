package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
)

// setup gives the pod its address, directories and credentials. It is called
// again after an error.
func (p *pod) setup(ctx context.Context) error {
	if err := p.takeAddress(); err != nil {
		return err
	}
	for _, dir := range []string{p.home(), p.tmp()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	for i := range p.object.Spec.Volumes {
		if err := p.makeVolume(&p.object.Spec.Volumes[i]); err != nil {
			return err
		}
	}
	p.mu.Lock()
	p.prepared = true
	p.mu.Unlock()
	p.project()
	if p.node.options.Kubeconfig == nil {
		return nil
	}
	kubeconfig, err := p.node.options.Kubeconfig(ctx, p.object)
	if err != nil {
		p.log.Error(err, "no kubeconfig for the pod yet")
		return err
	}
	p.kubeconfig = kubeconfig
	return nil
}

func (p *pod) takeAddress() error {
	if p.address != "" {
		return nil
	}
	address, err := p.node.addresses.take()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.address = address
	return err
}

func (p *pod) home() string { return filepath.Join(p.dir, "home") }
func (p *pod) tmp() string  { return filepath.Join(p.dir, "tmp") }

func (p *pod) makeVolume(volume *corev1.Volume) error {
	if volume.HostPath == nil {
		dir := filepath.Join(p.dir, "volumes", volume.Name)
		p.volumes[volume.Name] = dir
		return os.MkdirAll(dir, 0o700)
	}
	p.volumes[volume.Name] = volume.HostPath.Path
	return nil
}

func (c *container) openLog() (*os.File, error) {
	path := c.pod.node.Logs(c.pod.object.Namespace, c.pod.object.Name, c.spec.Name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // below the node's directory
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", c.spec.Name, err)
	}
	return log, nil
}
