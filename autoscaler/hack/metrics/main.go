// Metrics prints the autoscaler's metrics for hack/reference.
package main

import (
	"github.com/idalloc/idalloc/autoscaler/internal/decide"
	"github.com/idalloc/idalloc/autoscaler/internal/metrics"
	"github.com/idalloc/idalloc/hack/reference/described"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
)

func main() { described.Main(metrics.New("", decide.Settings{}, kinds.Ref{})) }
