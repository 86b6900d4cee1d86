// Package helm tests the chart in charts/idalloc with Helm's own libraries, on a real API server. The
// admission policy that it installs is the one of config/policy, whose effect test/envtest/policy tests.
package helm
