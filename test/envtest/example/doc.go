// Package example is what the tests of the examples share: a server that a script in hack runs, and a
// Deployment with partitions whose pods are processes of this machine.
//
//	broker, err := example.StartServer(ctx, "rabbitmq")
//	if err != nil { ... }
//	defer broker.Stop()
//
// A server that is not installed is an error that says how to install it. Nothing is skipped.
package example
