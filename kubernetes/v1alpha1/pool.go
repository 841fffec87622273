package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MetalPool is a set of hosts with rules of its own.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=mpool,categories=metal
// +kubebuilder:printcolumn:name="Total",type=integer,JSONPath=`.status.total`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.available`
// +kubebuilder:printcolumn:name="Claimed",type=integer,JSONPath=`.status.claimed`
// +kubebuilder:printcolumn:name="Cleaning",type=integer,JSONPath=`.status.cleaning`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.failed`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type MetalPool struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec says which hosts belong to the pool, and what its rules are.
	// +required
	Spec MetalPoolSpec `json:"spec"`
	// status counts its hosts.
	// +optional
	Status MetalPoolStatus `json:"status,omitempty,omitzero"`
}

// MetalPoolList is a list of pools.
// +kubebuilder:object:root=true
type MetalPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MetalPool `json:"items"`
}

// MetalPoolSpec says which hosts belong to a pool, and what its rules are.
type MetalPoolSpec struct {
	// selector of the hosts; all when empty.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// requirements that its hosts meet.
	// +optional
	Requirements *HardwareRequirements `json:"requirements,omitempty"`
	// allowedNamespaces may claim its hosts; all when it is left out.
	// +optional
	AllowedNamespaces *metav1.LabelSelector `json:"allowedNamespaces,omitempty"`
	// budgets bound what happens at the same time.
	// +optional
	Budgets PoolBudgets `json:"budgets,omitempty,omitzero"`
	// cleanPolicy says how disks are wiped when a machine goes.
	// +optional
	// +kubebuilder:default=Quick
	CleanPolicy CleanPolicy `json:"cleanPolicy,omitempty"`
	// minSpare hosts are kept from rollouts, for remediation.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinSpare *int32 `json:"minSpare,omitempty"`
}

// PoolBudgets bound what happens in a pool at the same time; no bound when left out.
type PoolBudgets struct {
	// maxConcurrentProvisioning counts installs.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxConcurrentProvisioning int32 `json:"maxConcurrentProvisioning,omitempty"`
	// maxConcurrentDestroy counts releases and wipes.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxConcurrentDestroy int32 `json:"maxConcurrentDestroy,omitempty"`
	// destroyIntervalSeconds pass between two releases.
	// +optional
	// +kubebuilder:validation:Minimum=0
	DestroyIntervalSeconds *int32 `json:"destroyIntervalSeconds,omitempty"`
}

// MetalPoolStatus counts the hosts of a pool.
type MetalPoolStatus struct {
	// total of its hosts.
	// +optional
	Total int32 `json:"total"`
	// available for machines.
	// +optional
	Available int32 `json:"available"`
	// claimed by machines.
	// +optional
	Claimed int32 `json:"claimed"`
	// cleaning are being wiped.
	// +optional
	Cleaning int32 `json:"cleaning"`
	// failed wait for a person.
	// +optional
	Failed int32 `json:"failed"`
	// observedGeneration of the spec that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions tell more.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
