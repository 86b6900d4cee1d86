package suite

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// label tells the pods of one workload from those of another.
const label = "app"

// grace is the termination grace period of built pods, in seconds.
const grace = int64(5)

// Container returns a container that runs a command. No command: the idalloc
// command itself; set Args.
func Container(name string, command ...string) corev1.Container {
	return corev1.Container{
		Name:    name,
		Image:   image,
		Command: command,
		Env: []corev1.EnvVar{
			fieldRef("POD_NAME", "metadata.name"),
			fieldRef("POD_NAMESPACE", "metadata.namespace"),
			fieldRef("POD_UID", "metadata.uid"),
			fieldRef("POD_IP", "status.podIP"),
		},
	}
}

// Sidecar returns the same as an init container that runs beside the others.
func Sidecar(name string, command ...string) corev1.Container {
	always := corev1.ContainerRestartPolicyAlways
	c := Container(name, command...)
	c.RestartPolicy = &always
	return c
}

func fieldRef(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

// PodSpec returns a pod of these containers with the service account Account and
// a grace period of five seconds.
func PodSpec(containers ...corev1.Container) *corev1.PodSpec {
	seconds := grace
	return &corev1.PodSpec{
		Containers:                    containers,
		ServiceAccountName:            Account,
		TerminationGracePeriodSeconds: &seconds,
	}
}

// Share mounts one emptyDir into all containers and init containers at path. It
// may be called for several paths.
func Share(spec *corev1.PodSpec, path string) {
	name := "shared-" + strconv.Itoa(len(spec.Volumes))
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			list[i].VolumeMounts = append(list[i].VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path})
		}
	}
}

// Deployment returns a Deployment of pods that carry the label app=name, as all
// builders' pods do. The
// spec is copied, here and by the other builders.
func Deployment(name string, replicas int32, spec *corev1.PodSpec) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector(name), Template: template(name, spec)},
	}
}

// StatefulSet returns a StatefulSet that starts its pods one after the other.
func StatefulSet(name string, replicas int32, spec *corev1.PodSpec) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.StatefulSetSpec{Replicas: &replicas, Selector: selector(name), Template: template(name, spec)},
	}
}

// ReplicaSet returns a ReplicaSet without a Deployment.
func ReplicaSet(name string, replicas int32, spec *corev1.PodSpec) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: selector(name), Template: template(name, spec)},
	}
}

// Job returns a Job that runs parallelism pods at once, each to its end. Its pods
// are not restarted in place.
func Job(name string, parallelism int32, spec *corev1.PodSpec) *batchv1.Job {
	spec = spec.DeepCopy()
	spec.RestartPolicy = corev1.RestartPolicyNever
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       batchv1.JobSpec{Parallelism: &parallelism, Completions: &parallelism, Template: template(name, spec)},
	}
}

// Pod returns a pod without a controller.
func Pod(name string, spec *corev1.PodSpec) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{label: name}}, Spec: *spec.DeepCopy()}
}

func selector(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{label: name}}
}

func template(name string, spec *corev1.PodSpec) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{label: name}}, Spec: *spec.DeepCopy()}
}
