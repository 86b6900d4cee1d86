package agent

import (
	"cmp"

	"github.com/idalloc/idalloc/internal/publish"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/identity"
)

// volume is the directory in which identities are published. It belongs to one pod.
type volume struct {
	*publish.Dir
	none identity.Identity // published while there is no id
	uid  string            // the pod's UID, empty while it is unknown
	left identity.Identity // shown by the files when this process begins
}

// open prepares the directory. It withdraws an id that another pod left there. If only this container restarted, the identity that the pod published before
// stays valid until the owner has been read. In that case current is that identity.
func open(dir string, o allocator.Options) (v *volume, current identity.Identity, err error) {
	v = &volume{Dir: publish.New(dir), uid: string(o.PodUID), none: identity.Pending(o.Pod, o.Namespace)}
	there, found, err := v.ours()
	if err != nil || !found || (v.uid != "" && v.Pod() != v.uid) {
		v.left = v.none
		return v, v.none, cmp.Or(v.clear(), err)
	}
	if v.left = there; v.uid == "" {
		return v, v.none, nil // an earlier pod of the same name may have published it; claim finds out
	}
	return v, there, nil
}

// ours returns the identity that an earlier process published for a pod of this name. found is false if there is none.
func (v *volume) ours() (there identity.Identity, found bool, err error) {
	there, found, err = v.Current()
	return there, found && there.Pod == v.none.Pod && there.Namespace == v.none.Namespace, err
}

// adopt makes the directory belong to this pod, which has this UID. It removes what an earlier pod of the same name left there.
func (v *volume) adopt(uid string) error {
	if v.Pod() == uid {
		return nil
	}
	if err := v.clear(); err != nil {
		return err
	}
	return v.SetPod(uid)
}

// clear removes what another pod left. If it fails, all removals fail for the same reason, so one error is enough.
func (v *volume) clear() error {
	noted, resumed, published := v.Note(identity.Identity{}), v.SetPaused(false), v.Publish(v.none)
	return cmp.Or(published, noted, resumed)
}

// empty publishes that the pod has no id. It is called for a pod that no longer exists.
func (v *volume) empty() error { return v.Publish(v.none.Without(identity.StateLost)) }
