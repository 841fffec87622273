package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SlipwayRemediation repairs an unhealthy Machine. A MachineHealthCheck makes it under the Machine's name.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=cluster-api
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta2=v1alpha1","cluster.x-k8s.io/provider=infrastructure-slipway","clusterctl.cluster.x-k8s.io="}
// +kubebuilder:printcolumn:name="Step",type=string,JSONPath=`.status.step`
// +kubebuilder:printcolumn:name="Retries",type=integer,JSONPath=`.status.retries`
type SlipwayRemediation struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec says what is tried.
	// +required
	Spec SlipwayRemediationSpec `json:"spec"`
	// status says how far it is.
	// +optional
	Status SlipwayRemediationStatus `json:"status,omitempty,omitzero"`
}

// SlipwayRemediationList is a list of remediations.
// +kubebuilder:object:root=true
type SlipwayRemediationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SlipwayRemediation `json:"items"`
}

// SlipwayRemediationSpec says what is tried, in which order.
type SlipwayRemediationSpec struct {
	// steps in their order.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Steps []RemediationStep `json:"steps"`
	// retryLimit of each step; 1 when left out.
	// +optional
	// +kubebuilder:validation:Minimum=1
	RetryLimit int32 `json:"retryLimit,omitempty"`
	// timeoutSeconds that a step is given before the next; 600 when left out.
	// +optional
	// +kubebuilder:validation:Minimum=60
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
	// outOfServiceTaint puts node.kubernetes.io/out-of-service on the node while the host is off.
	// +optional
	OutOfServiceTaint *bool `json:"outOfServiceTaint,omitempty"`
}

// RemediationStep is one way to repair.
// +kubebuilder:validation:Enum=PowerCycle;Reprovision;Replace
type RemediationStep string

// The values of RemediationStep.
const (
	StepPowerCycle  RemediationStep = "PowerCycle"
	StepReprovision RemediationStep = "Reprovision"
	StepReplace     RemediationStep = "Replace"
)

// SlipwayRemediationStatus says how far a remediation is.
type SlipwayRemediationStatus struct {
	// step that is being tried.
	// +optional
	Step RemediationStep `json:"step,omitempty"`
	// retries of the step.
	// +optional
	Retries int32 `json:"retries,omitempty"`
	// lastAttempt is when the step was begun.
	// +optional
	LastAttempt *metav1.Time `json:"lastAttempt,omitempty"`
	// conditions tell more.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SlipwayRemediationTemplate makes SlipwayRemediations: a MachineHealthCheck names it.
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=cluster-api
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta2=v1alpha1","cluster.x-k8s.io/provider=infrastructure-slipway","clusterctl.cluster.x-k8s.io=","clusterctl.cluster.x-k8s.io/move="}
type SlipwayRemediationTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec holds the template.
	// +required
	Spec SlipwayRemediationTemplateSpec `json:"spec"`
}

// SlipwayRemediationTemplateList is a list of templates.
// +kubebuilder:object:root=true
type SlipwayRemediationTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SlipwayRemediationTemplate `json:"items"`
}

// SlipwayRemediationTemplateSpec holds a template.
type SlipwayRemediationTemplateSpec struct {
	// template of the remediations.
	// +required
	Template SlipwayRemediationTemplateResource `json:"template"`
}

// SlipwayRemediationTemplateResource is a remediation to be.
type SlipwayRemediationTemplateResource struct {
	// metadata is put on the remediations.
	// +optional
	ObjectMeta TemplateMeta `json:"metadata,omitempty,omitzero"`
	// spec of the remediations.
	// +required
	Spec SlipwayRemediationSpec `json:"spec"`
}
