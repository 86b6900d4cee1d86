package main

import (
	_ "github.com/idalloc/idalloc/pkg/allocator/census"
	_ "sigs.k8s.io/controller-runtime/pkg/builder"
	_ "sigs.k8s.io/controller-runtime/pkg/manager"
)

func main() {}
