package receipt

import "strconv"

// ContractKey is the annotation of a pod with the number of the contract that its program needs: which annotations and files the controller provides.
// From number 2 on, the program that adds the gate to the pod writes it with the gate. Without it the number is 1.
const ContractKey = "idalloc.dev/contract"

// Contract is the highest number that this version supports.
const Contract = 1

// Newer reports whether a pod needs more than this version provides. A pod with an unreadable number does.
func Newer(annotations map[string]string) bool {
	text, has := annotations[ContractKey]
	if !has {
		return false
	}
	n, err := strconv.Atoi(text)
	return err != nil || n > Contract
}
