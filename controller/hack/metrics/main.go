// Metrics prints the controller's metrics for hack/reference.
package main

import (
	"time"

	"github.com/idalloc/idalloc/controller/internal/reconciler"
	"github.com/idalloc/idalloc/hack/reference/described"
)

func main() { described.Main(reconciler.NewMetrics(time.Now, nil, nil)) }
