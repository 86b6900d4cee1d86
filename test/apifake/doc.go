// Package apifake is the API server for tests of one package: server.Standalone behind HTTP, with what such tests need
// around it. What needs controllers or faults is for test/simulation.
package apifake
