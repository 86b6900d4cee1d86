package inject

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Kubernetes' defaults for a Deployment.
const (
	rollingUpdate = "RollingUpdate"
	quarter       = "25%"
)

// strategyWarning explains why the Deployment's next rolling update would wait forever, or returns "". The policy of config/inject/strategy.yaml has the same
// text.
func strategyWarning(object *yaml.Node, s settings) string {
	strategy := descend(object, "spec", "strategy")
	if value(object, "kind") != "Deployment" || s.drain != "" || cmp.Or(value(strategy, "type"), rollingUpdate) != rollingUpdate {
		return ""
	}
	replicas, err := strconv.Atoi(cmp.Or(value(object, "spec", "replicas"), "1"))
	if err != nil || replicas < 1 {
		return ""
	}
	unavailable, surge := cmp.Or(value(strategy, "rollingUpdate", "maxUnavailable"), quarter), cmp.Or(value(strategy, "rollingUpdate", "maxSurge"), quarter)
	if rounded(unavailable, replicas) != 0 || rounded(surge, 100) == 0 {
		return "" // an old pod ends first; if both are 0, Kubernetes sets maxUnavailable to 1
	}
	return fmt.Sprintf("its next rolling update would wait for ever: with replicas: %d, maxUnavailable (%s) is 0, so that a new pod starts before an old one ends, "+
		"and the old one keeps its id: set maxSurge: 0 and maxUnavailable: 1 in spec.strategy.rollingUpdate, or let the program say when it has stopped (%s: http)",
		replicas, unavailable, drainKey)
}

// rounded returns a number, or a percentage of all, rounded down. For anything else it returns -1; the API server refuses such a value.
func rounded(text string, all int) int {
	number, percentage := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(number)
	switch {
	case err != nil:
		return -1
	case percentage:
		return n * all / 100
	}
	return n
}
