package agent

import (
	"errors"

	"github.com/idalloc/idalloc/internal/publish"
	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/identity"
)

// volume is the directory that identities are published in, and whose it is.
type volume struct {
	*publish.Dir
	none identity.Identity // what is published while there is no id
	uid  string            // of this pod, empty while it is not known
	left identity.Identity // what the files show when this process begins
}

// open makes the directory ready. What another pod left in it, an id above all, is not in force.
// After a restart in place what this pod published stays in force until the first look says
// otherwise; then current is that.
func open(dir string, o allocator.Options) (v *volume, current identity.Identity, err error) {
	v = &volume{Dir: publish.New(dir), uid: string(o.PodUID), none: identity.Pending(o.Pod, o.Namespace)}
	there, found, err := v.ours()
	if err != nil || !found || (v.uid != "" && v.Pod() != v.uid) {
		v.left = v.none
		return v, v.none, errors.Join(err, v.Note(identity.Identity{}), v.Publish(v.none))
	}
	if v.left = there; v.uid == "" {
		return v, v.none, nil // may be a predecessor's of the same name: not announced until claim tells
	}
	return v, there, nil
}

// ours returns what an earlier process of a pod with this one's name published; false if there is nothing.
func (v *volume) ours() (there identity.Identity, found bool, err error) {
	there, found, err = v.Current()
	return there, found && there.Pod == v.none.Pod && there.Namespace == v.none.Namespace, err
}

// claim makes the directory this pod's, whose UID is known now.
func (v *volume) claim(uid string) error {
	if v.Pod() == uid {
		return nil
	}
	if err := v.Publish(v.none); err != nil {
		return err
	}
	return v.SetPod(uid)
}

// empty publishes that a pod that does not exist any more has no id.
func (v *volume) empty() error { return v.Publish(v.none.Without(identity.StateLost)) }
