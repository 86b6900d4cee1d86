package wire

import (
	"encoding/json"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAStatusIsReadAsOne(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "worker", errors.New("no"))
	refused.ErrStatus.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	raw, err := json.Marshal(refused.ErrStatus)
	if err != nil {
		t.Fatal(err)
	}
	for name, into := range map[string]runtime.Object{"where anything may come": nil, "instead of an owner": &Object{}, "instead of a list": &Objects{}} {
		t.Run(name, func(t *testing.T) {
			got, _, err := objectCodec{}.Decode(raw, nil, into)
			status, ok := got.(*metav1.Status)
			if err != nil || !ok || !apierrors.IsForbidden(apierrors.FromObject(status)) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
	if _, _, err := (objectCodec{}).Decode([]byte(`<html>`), nil, nil); err == nil {
		t.Error("a page was read as an owner")
	}
}
