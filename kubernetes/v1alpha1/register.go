package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of the kinds.
const Group = "metal.slipway.dev"

// GroupVersion is the group with the one version there is.
var GroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

// Names of the kinds.
const (
	KindMetalHost    = "MetalHost"
	KindMetalPool    = "MetalPool"
	KindMetalMachine = "MetalMachine"
	KindJoinTarget   = "JoinTarget"
)

// AddToScheme makes the kinds known to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&MetalHost{}, &MetalHostList{}, &MetalPool{}, &MetalPoolList{},
		&MetalMachine{}, &MetalMachineList{}, &JoinTarget{}, &JoinTargetList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
