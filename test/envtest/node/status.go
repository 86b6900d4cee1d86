package node

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// status returns what the API server is to know about the pod now.
func (p *pod) status() corev1.PodStatus {
	inits, mains := snapshots(p.inits), snapshots(p.mains)
	p.mu.Lock()
	defer p.mu.Unlock()
	s := corev1.PodStatus{
		Phase:                 phase(p.stage, mains),
		HostIP:                hostIP,
		HostIPs:               []corev1.HostIP{{IP: hostIP}},
		StartTime:             &p.startTime,
		InitContainerStatuses: inits,
		ContainerStatuses:     mains,
	}
	if p.address != "" {
		s.PodIP, s.PodIPs = p.address, []corev1.PodIP{{IP: p.address}}
	}
	if p.stage == endedByEvict {
		s.Reason, s.Message = "Evicted", p.evicted
	}
	s.Conditions = conditions(p.object, p.stage, &s)
	return s
}

func snapshots(containers []*container) []corev1.ContainerStatus {
	statuses := make([]corev1.ContainerStatus, 0, len(containers))
	for _, c := range containers {
		statuses = append(statuses, c.snapshot())
	}
	return statuses
}

// phase is final only when no process is left, sidecars included. A pod that
// was deleted ends as Succeeded or Failed too, whatever its restart policy.
func phase(s stage, mains []corev1.ContainerStatus) corev1.PodPhase {
	failed := slices.ContainsFunc(mains, func(c corev1.ContainerStatus) bool {
		return c.State.Terminated == nil || c.State.Terminated.ExitCode != 0
	})
	switch {
	case s == preparing:
		return corev1.PodPending
	case s == initialized:
		return corev1.PodRunning
	case s == ended && !failed:
		return corev1.PodSucceeded
	default:
		return corev1.PodFailed
	}
}

// conditions returns the pod conditions that a kubelet owns, without times.
func conditions(object *corev1.Pod, s stage, status *corev1.PodStatus) []corev1.PodCondition {
	var unready []string
	for i := range status.InitContainerStatuses {
		c := &status.InitContainerStatuses[i]
		policy := object.Spec.InitContainers[i].RestartPolicy
		if policy != nil && *policy == corev1.ContainerRestartPolicyAlways && !c.Ready {
			unready = append(unready, c.Name)
		}
	}
	for i := range status.ContainerStatuses {
		c := &status.ContainerStatuses[i]
		if !c.Ready {
			unready = append(unready, c.Name)
		}
	}
	containersReady := s == initialized && len(unready) == 0
	reason := ""
	switch {
	case status.Phase == corev1.PodSucceeded:
		reason = "PodCompleted"
	case status.Phase == corev1.PodFailed:
		reason = "PodFailed"
	case !containersReady:
		reason = "ContainersNotReady"
	}
	return []corev1.PodCondition{
		condition(corev1.PodScheduled, true, ""),
		condition(corev1.PodReadyToStartContainers, status.PodIP != "" && s != ended && s != endedByEvict, ""),
		condition(corev1.PodInitialized, s == initialized || status.Phase == corev1.PodSucceeded, ""),
		condition(corev1.ContainersReady, containersReady, reason),
		condition(corev1.PodReady, containersReady, reason),
	}
}

func condition(kind corev1.PodConditionType, ok bool, reason string) corev1.PodCondition {
	status := corev1.ConditionFalse
	if ok {
		status, reason = corev1.ConditionTrue, ""
	}
	return corev1.PodCondition{Type: kind, Status: status, Reason: reason}
}

// stamp gives each condition the time of its last change of status.
func stamp(now metav1.Time, current, last []corev1.PodCondition) {
	for i := range current {
		current[i].LastTransitionTime = now
		for _, old := range last {
			if old.Type == current[i].Type && old.Status == current[i].Status {
				current[i].LastTransitionTime = old.LastTransitionTime
			}
		}
	}
}
