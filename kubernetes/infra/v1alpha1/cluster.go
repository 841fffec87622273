package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	metal "slipway.dev/slipway/kubernetes/v1alpha1"
)

// SlipwayCluster is what a Cluster of Cluster API stands on.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=slc,categories=cluster-api
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta2=v1alpha1","cluster.x-k8s.io/provider=infrastructure-slipway","clusterctl.cluster.x-k8s.io="}
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels['cluster\.x-k8s\.io/cluster-name']`
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.spec.controlPlaneEndpoint.host`
// +kubebuilder:printcolumn:name="Provisioned",type=boolean,JSONPath=`.status.initialization.provisioned`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
type SlipwayCluster struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec says where its API server is, and where its machines stand.
	// +optional
	Spec SlipwayClusterSpec `json:"spec,omitempty,omitzero"`
	// status is what became of it.
	// +optional
	Status SlipwayClusterStatus `json:"status,omitempty,omitzero"`
}

// SlipwayClusterList is a list of clusters.
// +kubebuilder:object:root=true
type SlipwayClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SlipwayCluster `json:"items"`
}

// SlipwayClusterSpec says where a cluster's API server is, and where its machines stand.
type SlipwayClusterSpec struct {
	// controlPlaneEndpoint is the address of the API server.
	// +optional
	ControlPlaneEndpoint APIEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`
	// endpointMode says who looks after the endpoint.
	// +optional
	// +kubebuilder:default=External
	EndpointMode EndpointMode `json:"endpointMode,omitempty"`
	// failureDomains that are offered; those of all hosts that the namespace may use when empty.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	FailureDomains []string `json:"failureDomains,omitempty"`
	// controlPlaneFailureDomains are those that control planes may use; all when empty.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	ControlPlaneFailureDomains []string `json:"controlPlaneFailureDomains,omitempty"`
}

// APIEndpoint is where an API server is reached.
// +kubebuilder:validation:MinProperties=1
type APIEndpoint struct {
	// host is a name or an address.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Host string `json:"host,omitempty"`
	// port of the API server.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

// EndpointMode says who looks after an endpoint.
// +kubebuilder:validation:Enum=External;StaticPodVIP;Appliance
type EndpointMode string

// The values of EndpointMode.
const (
	EndpointExternal     EndpointMode = "External"     // someone else
	EndpointStaticPodVIP EndpointMode = "StaticPodVIP" // a pod on the control planes
	EndpointAppliance    EndpointMode = "Appliance"    // Slipway forwards; for labs
)

// SlipwayClusterStatus is what became of a cluster.
type SlipwayClusterStatus struct {
	// conditions tell how far each concern is.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// initialization says whether machines may be made.
	// +optional
	Initialization metal.Initialization `json:"initialization,omitempty,omitzero"`
	// failureDomains that machines may be spread over.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	FailureDomains []FailureDomain `json:"failureDomains,omitempty"`
	// ready mirrors initialization.provisioned for readers of contract v1beta1.
	// +optional
	Ready *bool `json:"ready,omitempty"`
	// observedGeneration of the spec that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// FailureDomain is a place whose hosts may fail together.
type FailureDomain struct {
	// name of the domain.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`
	// controlPlane is true when control planes may use it.
	// +optional
	ControlPlane *bool `json:"controlPlane,omitempty"`
	// attributes for people.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Attributes map[string]string `json:"attributes,omitempty"`
}

// SlipwayClusterTemplate makes SlipwayClusters, for ClusterClasses.
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=slct,categories=cluster-api
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta2=v1alpha1","cluster.x-k8s.io/provider=infrastructure-slipway","clusterctl.cluster.x-k8s.io="}
type SlipwayClusterTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec holds the template.
	// +required
	Spec SlipwayClusterTemplateSpec `json:"spec"`
}

// SlipwayClusterTemplateList is a list of templates.
// +kubebuilder:object:root=true
type SlipwayClusterTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SlipwayClusterTemplate `json:"items"`
}

// SlipwayClusterTemplateSpec holds a template.
type SlipwayClusterTemplateSpec struct {
	// template of the clusters.
	// +required
	Template SlipwayClusterTemplateResource `json:"template"`
}

// SlipwayClusterTemplateResource is a cluster to be.
type SlipwayClusterTemplateResource struct {
	// metadata is put on the clusters.
	// +optional
	ObjectMeta TemplateMeta `json:"metadata,omitempty,omitzero"`
	// spec of the clusters.
	// +optional
	Spec SlipwayClusterSpec `json:"spec,omitempty,omitzero"`
}
