package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// MetalMachine is one server that is wanted, with or without a Kubernetes node on it.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mm,categories=metal
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.status.hostRef.name`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.nodeRef.name`
// +kubebuilder:printcolumn:name="Profile",type=string,JSONPath=`.spec.os.profile`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.versions.kubelet`
// +kubebuilder:printcolumn:name="IP",type=string,JSONPath=`.status.addresses[?(@.type=="InternalIP")].address`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Provider-ID",type=string,priority=1,JSONPath=`.spec.providerID`
// +kubebuilder:printcolumn:name="Domain",type=string,priority=1,JSONPath=`.status.failureDomain`
// +kubebuilder:printcolumn:name="Paused",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Paused")].status`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="the name is at most 63 characters long: it becomes the host name"
type MetalMachine struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec is the server that is wanted.
	// +required
	Spec MetalMachineSpec `json:"spec"`
	// status is what became of it.
	// +optional
	Status MetalMachineStatus `json:"status,omitempty,omitzero"`
}

// MetalMachineList is a list of machines.
// +kubebuilder:object:root=true
type MetalMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MetalMachine `json:"items"`
}

// MetalMachineSpec is the server that is wanted.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.claimID) || has(self.claimID) && (self.claimID == oldSelf.claimID || has(self.providerID) && (!has(oldSelf.providerID) || self.providerID != oldSelf.providerID))",message="claimID is Slipway's: it cannot be removed, and changes only together with providerID"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || has(self.providerID) && (self.providerID == oldSelf.providerID || has(self.claimID) && (!has(oldSelf.claimID) || self.claimID != oldSelf.claimID))",message="providerID is Slipway's: it cannot be removed, and changes only together with claimID"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.claimID) || !has(oldSelf.placement) || has(self.placement) && self.placement == oldSelf.placement",message="placement cannot be changed once a host is claimed: delete the machine and create it again"
// +kubebuilder:validation:XValidation:rule="!has(self.roles) || size(self.roles) == 0 || has(self.bootstrap) && has(self.bootstrap.join)",message="roles are those of a machine that joins a cluster: give bootstrap.join, or leave roles out"
// +kubebuilder:validation:XValidation:rule="!has(self.versions) || has(self.bootstrap) && has(self.bootstrap.join)",message="versions are those of a machine that joins a cluster: give bootstrap.join, or leave versions out"
// +kubebuilder:validation:XValidation:rule="!has(self.node) || has(self.bootstrap) && has(self.bootstrap.join)",message="node is put on the node of a machine that joins a cluster: give bootstrap.join, or leave node out"
// +kubebuilder:validation:XValidation:rule="!has(self.failureDomain) || !has(self.placement) || !has(self.placement.hostName)",message="placement.hostName takes exactly that host: leave failureDomain out"
type MetalMachineSpec struct {
	// placement says which hosts it may be given. It cannot be changed once a host is claimed.
	// +optional
	Placement *Placement `json:"placement,omitempty"`
	// failureDomain that it shall stand in: a site, row or rack.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	FailureDomain string `json:"failureDomain,omitempty"`
	// os is the operating system.
	// +required
	OS OSSpec `json:"os"`
	// hostname of the installed system; the machine's name when left out.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Hostname string `json:"hostname,omitempty"`
	// roles in the cluster that it joins; Node when empty. A ControlPlane is a node as well, with kubeadm's taint.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=2
	Roles []MachineRole `json:"roles,omitempty"`
	// versions that are wanted; what is left out is the join target's or the profile's.
	// +optional
	Versions WantedVersions `json:"versions,omitempty,omitzero"`
	// bootstrap makes it a node; a plain server when left out.
	// +optional
	Bootstrap *Bootstrap `json:"bootstrap,omitempty"`
	// node is put on the Kubernetes node and put back when it is removed there. Others' are left alone.
	// +optional
	Node NodeMeta `json:"node,omitempty,omitzero"`
	// files are written on the first boot.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=64
	Files []File `json:"files,omitempty"`
	// users are created on the first boot.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Users []User `json:"users,omitempty"`
	// deletion says how the machine goes.
	// +optional
	Deletion Deletion `json:"deletion,omitempty,omitzero"`
	// updatePolicy says what happens when os, bootstrap, files, users or versions change.
	// +optional
	// +kubebuilder:default=OnDelete
	UpdatePolicy UpdatePolicy `json:"updatePolicy,omitempty"`
	// providerConfig is for Slipway only, decoded as SlipwayProviderConfig.
	// +optional
	ProviderConfig *ProviderConfig `json:"providerConfig,omitempty"`
	// claimID of the host that it has. Slipway writes it; whoever creates the object again keeps it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ClaimID string `json:"claimID,omitempty"`
	// providerID of the node. Slipway writes it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ProviderID string `json:"providerID,omitempty"`
}

// MachineRole is what a machine does in a Kubernetes cluster.
// +kubebuilder:validation:Enum=ControlPlane;Node
type MachineRole string

// The values of MachineRole.
const (
	RoleControlPlane MachineRole = "ControlPlane"
	RoleNode         MachineRole = "Node"
)

// UpdatePolicy says what happens when the spec changes.
// +kubebuilder:validation:Enum=OnDelete;Reprovision
type UpdatePolicy string

// The values of UpdatePolicy.
const (
	UpdateOnDelete    UpdatePolicy = "OnDelete"    // nothing, until someone deletes the machine
	UpdateReprovision UpdatePolicy = "Reprovision" // the host is drained and installed anew
)

// Bootstrap makes a server a node.
// +kubebuilder:validation:XValidation:rule="!(has(self.dataSecretName) && has(self.join))",message="dataSecretName and join exclude each other"
// +kubebuilder:validation:XValidation:rule="has(self.dataSecretName) || has(self.join)",message="say where the data come from: dataSecretName or join; a plain server has no bootstrap"
type Bootstrap struct {
	// dataSecretName names a Secret with the key value, and with the key format when it is no cloud-config.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	DataSecretName string `json:"dataSecretName,omitempty"`
	// join lets Slipway make the data.
	// +optional
	Join *Join `json:"join,omitempty"`
}

// Join makes a server a node of a join target.
type Join struct {
	// targetRef names the JoinTarget.
	// +required
	TargetRef TargetReference `json:"targetRef"`
	// kubeletExtraArgs are flags of the kubelet.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	KubeletExtraArgs []Arg `json:"kubeletExtraArgs,omitempty"`
	// preCommands run before the machine joins.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=8192
	PreCommands []string `json:"preCommands,omitempty"`
	// postCommands run after the machine has joined.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=8192
	PostCommands []string `json:"postCommands,omitempty"`
}

// TargetReference names a JoinTarget in the machine's namespace.
type TargetReference struct {
	// name of the JoinTarget.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// Arg is one flag.
type Arg struct {
	// name of the flag, without dashes.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`
	// value of the flag.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Value string `json:"value,omitempty"`
}

// NodeMeta is put on a node.
type NodeMeta struct {
	// labels of the node.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`
	// annotations of the node.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`
	// taints of the node.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Taints []NodeTaint `json:"taints,omitempty"`
}

// NodeTaint is a taint of a node.
type NodeTaint struct {
	// key of the taint.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	Key string `json:"key"`
	// value of the taint.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Value string `json:"value,omitempty"`
	// effect of the taint.
	// +required
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect string `json:"effect"`
}

// File is written on the first boot.
// +kubebuilder:validation:XValidation:rule="has(self.content) != has(self.contentFrom)",message="say exactly one of content and contentFrom"
// +kubebuilder:validation:XValidation:rule="!has(self.contentFrom) || !has(self.template) || !self.template",message="what is in a Secret is no template: leave template out"
// +kubebuilder:validation:XValidation:rule="!has(self.content) || !has(self.encoding) || self.encoding != 'gzip'",message="gzip is no text: write encoding: gzip+base64, or use contentFrom"
type File struct {
	// path of the file, absolute.
	// +required
	// +kubebuilder:validation:Pattern=`^/`
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path"`
	// permissions in octal: 0644.
	// +optional
	// +kubebuilder:validation:Pattern=`^0?[0-7]{3,4}$`
	// +kubebuilder:validation:MaxLength=5
	Permissions string `json:"permissions,omitempty"`
	// owner as user or user:group.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Owner string `json:"owner,omitempty"`
	// encoding of the content.
	// +optional
	// +kubebuilder:validation:Enum=base64;gzip;gzip+base64
	Encoding string `json:"encoding,omitempty"`
	// template renders the content with the host's facts.
	// +optional
	Template *bool `json:"template,omitempty"`
	// append adds to a file that is there.
	// +optional
	Append *bool `json:"append,omitempty"`
	// content of the file.
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	Content *string `json:"content,omitempty"`
	// contentFrom names a Secret's key that holds the content.
	// +optional
	ContentFrom *SecretKeySelector `json:"contentFrom,omitempty"`
}

// User is created on the first boot.
type User struct {
	// name of the user.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z_][a-z0-9_-]*$`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`
	// sshAuthorizedKeys let people in.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=8192
	SSHAuthorizedKeys []string `json:"sshAuthorizedKeys,omitempty"`
	// passwordHashFrom names a Secret's key that holds the hash of the password.
	// +optional
	PasswordHashFrom *SecretKeySelector `json:"passwordHashFrom,omitempty"`
	// sudo rule: ALL=(ALL) NOPASSWD:ALL.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Sudo string `json:"sudo,omitempty"`
	// shell that logs in.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Shell string `json:"shell,omitempty"`
	// groups that the user belongs to as well.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=32
	Groups []string `json:"groups,omitempty"`
}

// Deletion says how a machine goes.
type Deletion struct {
	// drain moves the pods away first.
	// +optional
	Drain Drain `json:"drain,omitempty,omitzero"`
	// clean says how the disks are wiped; as the pool says when left out.
	// +optional
	Clean CleanPolicy `json:"clean,omitempty"`
	// releaseAfter says when the machine is gone.
	// +optional
	// +kubebuilder:default=Fenced
	ReleaseAfter ReleaseAfter `json:"releaseAfter,omitempty"`
	// nodeDeletionTimeoutSeconds bounds how long the deletion of the node is tried; 0 is no bound.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NodeDeletionTimeoutSeconds *int32 `json:"nodeDeletionTimeoutSeconds,omitempty"`
}

// Drain moves the pods of a node away.
type Drain struct {
	// enabled is true unless it says false.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`
	// timeoutSeconds bounds the drain; 0 is no bound.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=0
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// onTimeout goes on by force, or waits.
	// +optional
	// +kubebuilder:default=Force
	OnTimeout DrainTimeoutPolicy `json:"onTimeout,omitempty"`
	// gracePeriodSeconds of the pods; -1 and nothing mean the pod's own.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`
	// deleteEmptyDirData lets pods go that keep data in an emptyDir.
	// +optional
	DeleteEmptyDirData *bool `json:"deleteEmptyDirData,omitempty"`
	// volumeDetachTimeoutSeconds bounds the wait for volumes; 0 is no bound.
	// +optional
	// +kubebuilder:validation:Minimum=0
	VolumeDetachTimeoutSeconds *int32 `json:"volumeDetachTimeoutSeconds,omitempty"`
}

// DrainTimeoutPolicy says what happens when a drain takes too long.
// +kubebuilder:validation:Enum=Force;Block
type DrainTimeoutPolicy string

// The values of DrainTimeoutPolicy.
const (
	DrainForce DrainTimeoutPolicy = "Force"
	DrainBlock DrainTimeoutPolicy = "Block"
)

// ProviderConfig is for Slipway only.
type ProviderConfig struct {
	// value is a SlipwayProviderConfig.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Value *runtime.RawExtension `json:"value,omitempty"`
}

// SlipwayProviderConfig is what ProviderConfig holds: what no other field says. Unknown fields are refused when it is
// read.
type SlipwayProviderConfig struct {
	metav1.TypeMeta `json:",inline"`
	// rootDevice overrides the host's and the profile's choice of disk.
	// +optional
	RootDevice *RootDevice `json:"rootDevice,omitempty"`
	// keepDisks are never wiped.
	// +optional
	KeepDisks []RootDevice `json:"keepDisks,omitempty"`
	// config is a layer of machine configuration as Slipway's profiles have it, YAML.
	// +optional
	Config string `json:"config,omitempty"`
}
