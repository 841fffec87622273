package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// JoinTarget is a Kubernetes cluster that machines join, or that the first of them makes.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=jt,categories=metal
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.spec.controlPlaneEndpoint`
// +kubebuilder:printcolumn:name="Initialized",type=string,JSONPath=`.status.conditions[?(@.type=="ControlPlaneInitialized")].status`
// +kubebuilder:printcolumn:name="Reachable",type=string,JSONPath=`.status.conditions[?(@.type=="Reachable")].status`
type JoinTarget struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec says which cluster it is.
	// +required
	Spec JoinTargetSpec `json:"spec"`
	// status is how it is.
	// +optional
	Status JoinTargetStatus `json:"status,omitempty,omitzero"`
}

// JoinTargetList is a list of join targets.
// +kubebuilder:object:root=true
type JoinTargetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []JoinTarget `json:"items"`
}

// JoinTargetSpec says which cluster machines join.
// +kubebuilder:validation:XValidation:rule="has(self.kubeconfigSecretRef) || has(self.staticToken) || has(self.init) && self.init",message="say how machines get in: kubeconfigSecretRef, staticToken or init: true"
type JoinTargetSpec struct {
	// controlPlaneEndpoint is host:port of the API server.
	// +required
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^.+:\d+$`
	ControlPlaneEndpoint string `json:"controlPlaneEndpoint"`
	// kubeconfigSecretRef names the kubeconfig of an administrator: tokens are made with it, and nodes are looked at.
	// +optional
	KubeconfigSecretRef *SecretKeySelector `json:"kubeconfigSecretRef,omitempty"`
	// staticToken is for a cluster that Slipway cannot reach.
	// +optional
	StaticToken *StaticToken `json:"staticToken,omitempty"`
	// init lets the first control plane machine make the cluster.
	// +optional
	Init *bool `json:"init,omitempty"`
	// kubernetesVersion of the cluster: v1.36.3.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// workerJoinParallelism bounds how many workers join at the same time. Control planes join one at a time.
	// +optional
	// +kubebuilder:default=20
	// +kubebuilder:validation:Minimum=1
	WorkerJoinParallelism int32 `json:"workerJoinParallelism,omitempty"`
	// tokenTTLSeconds is how long the token of one machine lives; 1800 when left out.
	// +optional
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=86400
	TokenTTLSeconds int32 `json:"tokenTTLSeconds,omitempty"`
	// clusterConfiguration is merged into kubeadm's when the cluster is made.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	ClusterConfiguration *runtime.RawExtension `json:"clusterConfiguration,omitempty"`
}

// StaticToken is a bootstrap token that someone else looks after.
type StaticToken struct {
	// tokenSecretRef names the token.
	// +required
	TokenSecretRef SecretKeySelector `json:"tokenSecretRef"`
	// caCertHashes pin the cluster's certificate authority, as kubeadm writes them.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	CACertHashes []CACertHash `json:"caCertHashes"`
}

// CACertHash is the hash of a certificate authority's public key.
// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
// +kubebuilder:validation:MaxLength=71
type CACertHash string

// JoinTargetStatus is how a cluster is.
type JoinTargetStatus struct {
	// conditions: ControlPlaneInitialized, Reachable.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration of the spec that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// initHolder is the machine whose turn it is to make the cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	InitHolder string `json:"initHolder,omitempty"`
}
