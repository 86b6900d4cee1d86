// Package observe says where a live cluster leaves the protocol. It follows pods and Leases, or reads an audit log, writes what it sees as the steps of
// test/proof, and has internal/conformance judge them. It writes nothing to the cluster.
//
// A pod works on what its receipt has noted, or what it has begun. A watch does not show lists, nor who wrote. So there a list may have been made at any
// moment, and a receipt that looks like its pod's is its pod's: what is found is a warning. An audit log says both, so it accuses.
package observe
