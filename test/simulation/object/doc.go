// Package object reads, changes, compares and encodes API objects as JSON has them: maps of maps.
//
// It knows the kinds of objects that a workload consists of. It does not know what their fields mean to a server or to
// a controller, and it keeps nothing. Comparing and encoding do without reflection, because the simulated server does
// little else; tests hold them against reflect.DeepEqual and json.Marshal.
package object
