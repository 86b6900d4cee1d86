// Package rollout computes how a Deployment replaces its pods by new ones, and how far it has come. It is pure.
package rollout
