package metrics_test

import (
	"math"
	"strconv"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// follower is what an example has an HPA do.
type follower struct {
	perPod   float64
	behavior *autoscalingv2.HorizontalPodAutoscalerBehavior
	min, max int32
}

// follows returns the number of pods that an HPA with an external metric of the type AverageValue sets: it divides the metric by the target
// and rounds up, unless that is within the tolerance of the pods that there are. It goes as far as the policies allow in one step.
func (f follower) follows(pods int, metric float64) int {
	ratio := metric / (f.perPod * float64(pods))
	if 1-tolerance(f.behavior.ScaleDown) <= ratio && ratio <= 1+tolerance(f.behavior.ScaleUp) {
		return pods
	}
	least, most := reach(pods, -1, f.behavior.ScaleDown), reach(pods, 1, f.behavior.ScaleUp)
	return min(max(int(math.Ceil(metric/f.perPod)), int(f.min), least), int(f.max), most)
}

// reach returns how far an HPA goes in one step of this direction. Without policies it doubles or adds four pods, or removes all.
func reach(pods, direction int, rules *autoscalingv2.HPAScalingRules) int {
	policies := rules.Policies
	if len(policies) == 0 {
		policies = []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PercentScalingPolicy, Value: 100}}
		if direction > 0 {
			policies = append(policies, autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: 4})
		}
	}
	step := 0
	for _, p := range policies {
		if p.Type == autoscalingv2.PercentScalingPolicy {
			step = max(step, pods*int(p.Value)/100)
		} else {
			step = max(step, int(p.Value))
		}
	}
	return pods + direction*step
}

// tolerance returns a tenth where the manifest says nothing.
func tolerance(rules *autoscalingv2.HPAScalingRules) float64 {
	t := resource.MustParse("0.1")
	if rules != nil && rules.Tolerance != nil {
		t = *rules.Tolerance
	}
	return t.AsApproximateFloat64()
}

func fromHPA(t *testing.T) follower {
	t.Helper()
	var h autoscalingv2.HorizontalPodAutoscaler
	if err := yaml.UnmarshalStrict([]byte(root(t, "autoscaler", "config", "hpa.yaml")), &h); err != nil {
		t.Fatal(err)
	}
	return follower{h.Spec.Metrics[0].External.Target.AverageValue.AsApproximateFloat64(), h.Spec.Behavior, *h.Spec.MinReplicas, h.Spec.MaxReplicas}
}

// fromKEDA returns what the HPA does that KEDA makes.
func fromKEDA(t *testing.T) follower {
	t.Helper()
	var o struct {
		Spec struct {
			MinReplicaCount int32 `json:"minReplicaCount"`
			MaxReplicaCount int32 `json:"maxReplicaCount"`
			Triggers        []struct {
				MetricType autoscalingv2.MetricTargetType `json:"metricType"`
				Metadata   map[string]string              `json:"metadata"`
			} `json:"triggers"`
			Advanced struct {
				HPA struct {
					Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior"`
				} `json:"horizontalPodAutoscalerConfig"`
			} `json:"advanced"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(root(t, "autoscaler", "config", "scaledobject.yaml")), &o); err != nil {
		t.Fatal(err)
	}
	trigger := o.Spec.Triggers[0]
	threshold, err := strconv.ParseFloat(trigger.Metadata["threshold"], 64)
	if err != nil || trigger.MetricType != autoscalingv2.AverageValueMetricType {
		t.Fatalf("%v, %v", trigger, err)
	}
	return follower{threshold, o.Spec.Advanced.HPA.Behavior, o.Spec.MinReplicaCount, o.Spec.MaxReplicaCount}
}

func TestAnHPASetsWhatIsPublished(t *testing.T) {
	for name, f := range map[string]follower{"hpa.yaml": fromHPA(t), "scaledobject.yaml": fromKEDA(t)} {
		for pods := int(f.min); pods <= int(f.max); pods++ {
			for wanted := int(f.min); wanted <= int(f.max); wanted++ {
				if got := f.follows(pods, float64(wanted)); got != wanted {
					t.Errorf("%s: %d of %d pods are wanted, and it sets %d", name, wanted, pods, got)
				}
			}
		}
	}
}
