// Package kubeevent is the form of a Kubernetes Event that idalloc writes about an object. It is pure.
package kubeevent
