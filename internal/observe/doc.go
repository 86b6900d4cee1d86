// Package observe detects steps in a live cluster that the protocol does not allow. It follows pods and Leases, or reads an audit log. It writes what it sees
// as steps of test/proof, and internal/conformance judges them. It writes nothing to the cluster.
//
// A pod works on what its receipt notes, or on what it has begun. A watch shows neither lists nor writers. So with a watch, Observer assumes that a list may
// have been made at any moment, and that a receipt that looks like its pod's was written by that pod; a finding is a warning. An audit log shows both, so there
// a finding is an accusation.
package observe
