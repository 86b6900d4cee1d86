// Package helm tests the chart in charts/idalloc with Helm's command, on a real API server. The
// admission policies that it installs are those of config/policy, whose effect test/envtest/policy tests.
package helm
