package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of the kinds.
const Group = "infrastructure.cluster.x-k8s.io"

// GroupVersion is the group with the one version there is.
var GroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

// Names of the kinds.
const (
	KindSlipwayCluster             = "SlipwayCluster"
	KindSlipwayClusterTemplate     = "SlipwayClusterTemplate"
	KindSlipwayMachine             = "SlipwayMachine"
	KindSlipwayMachineTemplate     = "SlipwayMachineTemplate"
	KindSlipwayRemediation         = "SlipwayRemediation"
	KindSlipwayRemediationTemplate = "SlipwayRemediationTemplate"
)

// AddToScheme makes the kinds known to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&SlipwayCluster{}, &SlipwayClusterList{}, &SlipwayClusterTemplate{}, &SlipwayClusterTemplateList{},
		&SlipwayMachine{}, &SlipwayMachineList{}, &SlipwayMachineTemplate{}, &SlipwayMachineTemplateList{},
		&SlipwayRemediation{}, &SlipwayRemediationList{}, &SlipwayRemediationTemplate{}, &SlipwayRemediationTemplateList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
