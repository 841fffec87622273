package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MetalMachineStatus is what became of a machine.
type MetalMachineStatus struct {
	// phase sums up the rest, for people: nothing reads it.
	// +optional
	Phase MachinePhase `json:"phase,omitempty"`
	// conditions tell how far each concern is.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration of the spec that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// lastUpdated is when the phase changed last.
	// +optional
	LastUpdated *metav1.Time `json:"lastUpdated,omitempty"`
	// initialization says whether it has been provisioned once.
	// +optional
	Initialization Initialization `json:"initialization,omitempty,omitzero"`
	// hostRef names its host.
	// +optional
	HostRef *HostReference `json:"hostRef,omitempty"`
	// nodeRef names its node in the cluster that it joined.
	// +optional
	NodeRef *NodeReference `json:"nodeRef,omitempty"`
	// addresses of the machine.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Addresses []Address `json:"addresses,omitempty"`
	// failureDomain that its host stands in.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	FailureDomain string `json:"failureDomain,omitempty"`
	// versions that run.
	// +optional
	Versions Versions `json:"versions,omitempty,omitzero"`
	// attempts to install it, on all hosts.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// deletion says how far it is on its way out.
	// +optional
	Deletion *DeletionStatus `json:"deletion,omitempty"`
	// failureReason is set while something is wrong that only a change of the object repairs.
	// +optional
	FailureReason FailureReason `json:"failureReason,omitempty"`
	// failureMessage explains failureReason.
	// +optional
	// +kubebuilder:validation:MaxLength=10240
	FailureMessage string `json:"failureMessage,omitempty"`
}

// MachinePhase sums up how far a machine is.
// +kubebuilder:validation:Enum=Pending;Claiming;WaitingForBootstrapData;Provisioning;Booting;Joining;Running;Draining;Deleting;Failed;Unknown
type MachinePhase string

// The values of MachinePhase.
const (
	PhasePending                 MachinePhase = "Pending"
	PhaseClaiming                MachinePhase = "Claiming"
	PhaseWaitingForBootstrapData MachinePhase = "WaitingForBootstrapData"
	PhaseProvisioning            MachinePhase = "Provisioning"
	PhaseBooting                 MachinePhase = "Booting"
	PhaseJoining                 MachinePhase = "Joining"
	PhaseRunning                 MachinePhase = "Running"
	PhaseDraining                MachinePhase = "Draining"
	PhaseDeleting                MachinePhase = "Deleting"
	PhaseFailed                  MachinePhase = "Failed"
	PhaseUnknown                 MachinePhase = "Unknown"
)

// FailureReason is why a machine cannot go on until its object changes.
// +kubebuilder:validation:Enum=InvalidConfiguration;UnsupportedChange;CreateError;UpdateError;DeleteError;JoinTimeout
type FailureReason string

// The values of FailureReason.
const (
	FailureInvalidConfiguration FailureReason = "InvalidConfiguration"
	FailureUnsupportedChange    FailureReason = "UnsupportedChange"
	FailureCreateError          FailureReason = "CreateError"
	FailureUpdateError          FailureReason = "UpdateError"
	FailureDeleteError          FailureReason = "DeleteError"
	FailureJoinTimeout          FailureReason = "JoinTimeout"
)

// NodeReference names a node.
type NodeReference struct {
	// name of the node.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// uid of the node.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid,omitempty"`
}

// DeletionStatus says how far a machine is on its way out.
type DeletionStatus struct {
	// drainStarted is when the drain began.
	// +optional
	DrainStarted *metav1.Time `json:"drainStarted,omitempty"`
	// fencedAt is since when its old system cannot run any more.
	// +optional
	FencedAt *metav1.Time `json:"fencedAt,omitempty"`
	// blockedBy names what it waits for: pods, budgets, hooks.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=512
	BlockedBy []string `json:"blockedBy,omitempty"`
}
