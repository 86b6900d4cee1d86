// Package rollout says how a Deployment replaces its pods by new ones, and how far that is. It is pure.
package rollout
