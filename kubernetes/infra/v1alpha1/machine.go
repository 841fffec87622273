package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	metal "slipway.dev/slipway/kubernetes/v1alpha1"
)

// SlipwayMachine is the server of a Machine of Cluster API.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=slm,categories=metal;cluster-api
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta2=v1alpha1","cluster.x-k8s.io/provider=infrastructure-slipway","clusterctl.cluster.x-k8s.io="}
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels['cluster\.x-k8s\.io/cluster-name']`
// +kubebuilder:printcolumn:name="Machine",type=string,JSONPath=`.metadata.ownerReferences[?(@.kind=="Machine")].name`
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.status.hostRef.name`
// +kubebuilder:printcolumn:name="Provisioned",type=boolean,JSONPath=`.status.initialization.provisioned`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Provider-ID",type=string,priority=1,JSONPath=`.spec.providerID`
// +kubebuilder:printcolumn:name="Domain",type=string,priority=1,JSONPath=`.status.failureDomain`
// +kubebuilder:printcolumn:name="Paused",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Paused")].status`
type SlipwayMachine struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec is the server that is wanted.
	// +required
	Spec SlipwayMachineSpec `json:"spec"`
	// status is what became of it.
	// +optional
	Status SlipwayMachineStatus `json:"status,omitempty,omitzero"`
}

// SlipwayMachineList is a list of machines.
// +kubebuilder:object:root=true
type SlipwayMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SlipwayMachine `json:"items"`
}

// SlipwayMachineSpec is the server that is wanted.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.claimID) || has(self.claimID) && (self.claimID == oldSelf.claimID || has(self.providerID) && (!has(oldSelf.providerID) || self.providerID != oldSelf.providerID))",message="claimID is Slipway's: it cannot be removed, and changes only together with providerID"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || has(self.providerID) && (self.providerID == oldSelf.providerID || has(self.claimID) && (!has(oldSelf.claimID) || self.claimID != oldSelf.claimID))",message="providerID is Slipway's: it cannot be removed, and changes only together with claimID"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.claimID) || !has(oldSelf.placement) || has(self.placement) && self.placement == oldSelf.placement",message="placement cannot be changed once a host is claimed: delete the Machine and let it be created again"
// +kubebuilder:validation:XValidation:rule="!has(self.providerID) || self.providerID.startsWith('slipway://')",message="providerID begins with slipway://"
type SlipwayMachineSpec struct {
	// providerID of the node. Slipway writes it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ProviderID string `json:"providerID,omitempty"`
	// claimID of the host that it has. Slipway writes it; whoever moves or adopts a machine sets it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ClaimID string `json:"claimID,omitempty"`

	SlipwayMachineTemplateResourceSpec `json:",inline"`
}

// SlipwayMachineTemplateResourceSpec is the part of a machine that its template says.
type SlipwayMachineTemplateResourceSpec struct {
	// placement says which hosts it may be given. It cannot be changed once a host is claimed.
	// +optional
	Placement *metal.Placement `json:"placement,omitempty"`
	// os is the operating system.
	// +required
	OS metal.OSSpec `json:"os"`
	// extraConfig is merged with the bootstrap data.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	ExtraConfig []ExtraConfig `json:"extraConfig,omitempty"`
	// clean says how the disks are wiped; as the pool says when left out.
	// +optional
	Clean metal.CleanPolicy `json:"clean,omitempty"`
	// releaseAfter says when a deleted machine is gone.
	// +optional
	// +kubebuilder:default=Fenced
	ReleaseAfter metal.ReleaseAfter `json:"releaseAfter,omitempty"`
}

// ExtraConfig is configuration of one's own.
type ExtraConfig struct {
	// format it is written in.
	// +required
	Format ConfigFormat `json:"format"`
	// secretRef names a Secret with the key value.
	// +required
	SecretRef metal.SecretName `json:"secretRef"`
}

// ConfigFormat is a language of configuration.
// +kubebuilder:validation:Enum=cloud-config;ignition;butane
type ConfigFormat string

// The values of ConfigFormat.
const (
	FormatCloudConfig ConfigFormat = "cloud-config"
	FormatIgnition    ConfigFormat = "ignition"
	FormatButane      ConfigFormat = "butane"
)

// SlipwayMachineStatus is what became of a machine.
type SlipwayMachineStatus struct {
	// conditions tell how far each concern is.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// initialization says whether it has been provisioned once.
	// +optional
	Initialization metal.Initialization `json:"initialization,omitempty,omitzero"`
	// addresses of the machine.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Addresses []metal.Address `json:"addresses,omitempty"`
	// failureDomain that its host stands in.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	FailureDomain string `json:"failureDomain,omitempty"`
	// hostRef names its host.
	// +optional
	HostRef *metal.HostReference `json:"hostRef,omitempty"`
	// ready mirrors initialization.provisioned for readers of contract v1beta1.
	// +optional
	Ready *bool `json:"ready,omitempty"`
	// observedGeneration of the spec that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// SlipwayMachineTemplate makes SlipwayMachines. Its template never changes: roll out with a new one.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=slmt,categories=cluster-api
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta2=v1alpha1","cluster.x-k8s.io/provider=infrastructure-slipway","clusterctl.cluster.x-k8s.io="}
// +kubebuilder:printcolumn:name="Profile",type=string,JSONPath=`.spec.template.spec.os.profile`
// +kubebuilder:printcolumn:name="Matching",type=integer,JSONPath=`.status.matchingHosts`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableHosts`
type SlipwayMachineTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec holds the template.
	// +required
	Spec SlipwayMachineTemplateSpec `json:"spec"`
	// status says what machines of it would be.
	// +optional
	Status SlipwayMachineTemplateStatus `json:"status,omitempty,omitzero"`
}

// SlipwayMachineTemplateList is a list of templates.
// +kubebuilder:object:root=true
type SlipwayMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SlipwayMachineTemplate `json:"items"`
}

// SlipwayMachineTemplateSpec holds a template.
type SlipwayMachineTemplateSpec struct {
	// template of the machines.
	// +required
	Template SlipwayMachineTemplateResource `json:"template"`
}

// SlipwayMachineTemplateResource is a machine to be.
type SlipwayMachineTemplateResource struct {
	// metadata is put on the machines.
	// +optional
	ObjectMeta TemplateMeta `json:"metadata,omitempty,omitzero"`
	// spec of the machines.
	// +required
	Spec SlipwayMachineTemplateResourceSpec `json:"spec"`
}

// ResourceList is an amount of each resource: cpu, memory.
type ResourceList map[string]resource.Quantity

// SlipwayMachineTemplateStatus says what machines of a template would be.
type SlipwayMachineTemplateStatus struct {
	// capacity of the smallest matching host; an autoscaler reads it.
	// +optional
	Capacity ResourceList `json:"capacity,omitempty"`
	// nodeInfo of the matching hosts; an autoscaler reads it.
	// +optional
	NodeInfo NodeInfo `json:"nodeInfo,omitempty,omitzero"`
	// matchingHosts could be given to a machine, whatever they do now.
	// +optional
	MatchingHosts *int32 `json:"matchingHosts,omitempty"`
	// availableHosts could be given to a machine now.
	// +optional
	AvailableHosts *int32 `json:"availableHosts,omitempty"`
	// conditions tell more.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// NodeInfo is what nodes of a template would be.
// +kubebuilder:validation:MinProperties=1
type NodeInfo struct {
	// architecture of the node.
	// +optional
	Architecture metal.Architecture `json:"architecture,omitempty"`
	// operatingSystem of the node: linux.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	OperatingSystem string `json:"operatingSystem,omitempty"`
}

// TemplateMeta is put on the objects that are made of a template.
type TemplateMeta struct {
	// labels of the objects.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`
	// annotations of the objects.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`
}
