package inspect

// worker is the name of the workload, and of its account.
const worker = "worker"

func reported(n snapshot) Report                { return reportOf(factsOf(n)) }
func (n snapshot) view() View                   { return holdingOf(n).view() }
func (n snapshot) partitionView() PartitionView { return factsOf(n).partitionView() }
func (n snapshot) explain(name string) Explanation {
	return factsOf(n).explain(name, nil)
}
