// Package prometheus tests with a real Prometheus what config/prometheus, config/grafana and docs/metrics.md say: it finds and scrapes
// the pods of a Deployment, loads the rules, and answers each query of the dashboard. It asks what the autoscaler's page and
// manifests ask. Prometheus and promtool must be installed (hack/prometheus says how). Nothing is skipped.
package prometheus
