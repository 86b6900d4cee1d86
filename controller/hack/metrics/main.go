// Metrics prints the controller's metrics for hack/reference.
package main

import (
	"time"

	"github.com/idalloc/idalloc/controller/internal/executor"
	"github.com/idalloc/idalloc/hack/reference/described"
)

func main() { described.Main(executor.NewMetrics(time.Now, nil, nil)) }
