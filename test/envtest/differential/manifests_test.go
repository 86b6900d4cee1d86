package differential

// manifest draws an object that a real server takes.
func (g *generator) manifest(resource, name string) object {
	meta := object{"name": name}
	if g.chance(0.5) {
		meta[annotations] = object{g.key(): g.value()}
	}
	if g.chance(0.7) || resource == jobs { // a Job without labels gets its template's
		meta["labels"] = object{"app": pick(g, "worker", "other")}
	}
	if resource == pods {
		return g.podManifest(meta)
	}
	return ownerManifest(resource, meta, pick(g, 0, 1, 3))
}

// podManifest makes m one of a pod.
func (g *generator) podManifest(m object) object {
	if g.chance(0.3) {
		m["ownerReferences"] = []any{object{apiVersion: "apps/v1", "kind": "ReplicaSet", "name": "a", "uid": "u-1", "controller": true}}
	}
	spec := podSpec()
	if g.chance(0.7) {
		spec["nodeName"] = "node"
	}
	return object{apiVersion: "v1", "kind": "Pod", metadata: m, "spec": spec}
}

func podSpec() object {
	return object{
		"containers": []any{object{"name": "c", "image": "i"}}, "terminationGracePeriodSeconds": 30, "automountServiceAccountToken": false,
		"restartPolicy": "Always",
	}
}

func ownerManifest(resource string, meta object, n int) object {
	app := object{"app": "worker"}
	pod := podSpec()
	spec := object{"selector": object{"matchLabels": app}, replicas: n}
	version, kind := "apps/v1", "Deployment"
	switch resource {
	case deployments:
		spec["strategy"] = object{"type": "RollingUpdate", "rollingUpdate": object{"maxSurge": 1, "maxUnavailable": 0}}
	case statefulSets:
		kind, spec["serviceName"] = "StatefulSet", "s"
	case replicaSets:
		kind = "ReplicaSet"
	case jobs:
		version, kind = "batch/v1", "Job"
		delete(spec, replicas)
		spec["parallelism"], spec["manualSelector"], pod["restartPolicy"] = n, true, "Never"
	}
	spec["template"] = object{metadata: object{"labels": app, annotations: object{"r": "0"}}, "spec": pod}
	return object{apiVersion: version, "kind": kind, metadata: meta, "spec": spec}
}
