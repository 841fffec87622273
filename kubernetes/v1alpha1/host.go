package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MetalHost shows one host of Slipway's inventory, and takes what an operator says of it.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=mh,categories=metal
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Power",type=string,JSONPath=`.status.power`
// +kubebuilder:printcolumn:name="Claim",type=string,JSONPath=`.status.claim.name`
// +kubebuilder:printcolumn:name="Domain",type=string,JSONPath=`.spec.failureDomain`
// +kubebuilder:printcolumn:name="CPU",type=integer,JSONPath=`.status.hardware.cpu.threads`
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.status.hardware.memory`
// +kubebuilder:printcolumn:name="Last-Seen",type=date,JSONPath=`.status.lastSeen`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="IP",type=string,priority=1,JSONPath=`.status.addresses[?(@.type=="InternalIP")].address`
// +kubebuilder:printcolumn:name="Boot-MAC",type=string,priority=1,JSONPath=`.status.bootMAC`
// +kubebuilder:printcolumn:name="Serial",type=string,priority=1,JSONPath=`.status.hardware.system.serial`
// +kubebuilder:printcolumn:name="Ready",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
type MetalHost struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec is what an operator says of the host.
	// +required
	Spec MetalHostSpec `json:"spec"`
	// status is what Slipway knows of it.
	// +optional
	Status MetalHostStatus `json:"status,omitempty,omitzero"`
}

// MetalHostList is a list of hosts.
// +kubebuilder:object:root=true
type MetalHostList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MetalHost `json:"items"`
}

// MetalHostSpec is what an operator says of a host.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.inventoryID) || has(self.inventoryID) && self.inventoryID == oldSelf.inventoryID",message="inventoryID cannot be changed or removed once it is set"
type MetalHostSpec struct {
	// inventoryID is the host in Slipway's inventory. Slipway writes it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	InventoryID string `json:"inventoryID,omitempty"`
	// bootMACs declare a host before its first boot.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	BootMACs []MAC `json:"bootMACs,omitempty"`
	// accepted lets Slipway use the host.
	// +optional
	Accepted *bool `json:"accepted,omitempty"`
	// cordoned keeps new machines away; what runs goes on.
	// +optional
	Cordoned *bool `json:"cordoned,omitempty"`
	// protected forbids wiping and installing, whatever asks for it.
	// +optional
	Protected *bool `json:"protected,omitempty"`
	// maintenance stops everything that happens by itself: power, boot, wipe.
	// +optional
	Maintenance *HostMaintenance `json:"maintenance,omitempty"`
	// failureDomain overrides the host's place: a site, row or rack.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	FailureDomain string `json:"failureDomain,omitempty"`
	// taints keep machines away that do not tolerate them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Taints []HostTaint `json:"taints,omitempty"`
	// rootDevice chooses the disk that is installed on.
	// +optional
	RootDevice *RootDevice `json:"rootDevice,omitempty"`
	// power says how the host is switched on and off.
	// +optional
	Power *HostPower `json:"power,omitempty"`
	// reclaimPolicy says what becomes of the host when its machine goes.
	// +optional
	// +kubebuilder:default=Recycle
	ReclaimPolicy ReclaimPolicy `json:"reclaimPolicy,omitempty"`
}

// MAC is a hardware address in lower case with colons.
// +kubebuilder:validation:Pattern=`^[0-9a-f]{2}(:[0-9a-f]{2}){5}$`
// +kubebuilder:validation:MaxLength=17
type MAC string

// HostMaintenance says why a host is left alone.
type HostMaintenance struct {
	// reason for people.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason"`
	// until is when it is expected to end. The condition Maintenance shows it to people; nothing happens by itself then.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
}

// HostTaint keeps machines away from a host.
type HostTaint struct {
	// key of the taint.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	Key string `json:"key"`
	// value of the taint.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Value string `json:"value,omitempty"`
}

// RootDevice chooses a disk; every field that is set has to match.
type RootDevice struct {
	// deviceName is a path such as /dev/sda or /dev/disk/by-path/...
	// +optional
	// +kubebuilder:validation:MaxLength=256
	DeviceName string `json:"deviceName,omitempty"`
	// serial of the disk.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Serial string `json:"serial,omitempty"`
	// wwn is the disk's world wide name.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	WWN string `json:"wwn,omitempty"`
	// minSize is the least size.
	// +optional
	MinSize *resource.Quantity `json:"minSize,omitempty"`
	// rotational asks for a disk that turns, or for one that does not.
	// +optional
	Rotational *bool `json:"rotational,omitempty"`
}

// HostPower says how a host is switched on and off.
// +kubebuilder:validation:XValidation:rule="self.driver in ['WakeOnLAN', 'Manual'] || has(self.address)",message="this power driver needs an address"
// +kubebuilder:validation:XValidation:rule="self.driver != 'Webhook' || has(self.options) && self.options.exists(k, k in ['on.path', 'off.path', 'cycle.path'])",message="the driver Webhook needs options that say which calls switch the host: at least on.path and off.path"
// +kubebuilder:validation:XValidation:rule="self.driver != 'Manual' || !has(self.address)",message="a host that people switch by hand has no controller: leave address out"
// +kubebuilder:validation:XValidation:rule="!(self.driver in ['Manual', 'Libvirt']) || !(has(self.credentialsRef) || has(self.options))",message="the drivers Manual and Libvirt have no account and no options: leave credentialsRef and options out"
// +kubebuilder:validation:XValidation:rule="self.driver in ['Redfish', 'Webhook'] || !(has(self.insecureSkipVerify) || has(self.fingerprint))",message="only the drivers Redfish and Webhook check a certificate: leave insecureSkipVerify and fingerprint out"
type HostPower struct {
	// driver speaks to the host's controller.
	// +required
	Driver PowerDriver `json:"driver"`
	// address of the controller: a URL or a host name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Address string `json:"address,omitempty"`
	// credentialsRef names a Secret with the keys username and password. Its keys that begin with "header.", and secureon, are
	// options whose values are secret.
	// +optional
	CredentialsRef *SecretReference `json:"credentialsRef,omitempty"`
	// insecureSkipVerify takes any certificate of the controller.
	// +optional
	InsecureSkipVerify *bool `json:"insecureSkipVerify,omitempty"`
	// fingerprint is the SHA-256 of the certificate that the controller has, in hex: no other is taken.
	// +optional
	// +kubebuilder:validation:Pattern=`^([0-9a-fA-F]{2}:?){31}[0-9a-fA-F]{2}$`
	// +kubebuilder:validation:MaxLength=95
	Fingerprint string `json:"fingerprint,omitempty"`
	// options of the driver: on.path, off.path and the others of Webhook, cipher of IPMI, port of WakeOnLAN.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Options map[string]PowerOption `json:"options,omitempty"`
}

// PowerOption is the value of an option.
// +kubebuilder:validation:MaxLength=4096
type PowerOption string

// PowerDriver speaks to a host's controller.
// +kubebuilder:validation:Enum=Redfish;IPMI;Libvirt;WakeOnLAN;Webhook;Manual
type PowerDriver string

// The values of PowerDriver.
const (
	PowerRedfish   PowerDriver = "Redfish"
	PowerIPMI      PowerDriver = "IPMI"
	PowerLibvirt   PowerDriver = "Libvirt"
	PowerWakeOnLAN PowerDriver = "WakeOnLAN"
	PowerWebhook   PowerDriver = "Webhook"
	PowerManual    PowerDriver = "Manual"
)

// ReclaimPolicy says what becomes of a host when its machine goes.
// +kubebuilder:validation:Enum=Recycle;Retain
type ReclaimPolicy string

// The values of ReclaimPolicy.
const (
	ReclaimRecycle ReclaimPolicy = "Recycle" // wiped and free
	ReclaimRetain  ReclaimPolicy = "Retain"  // parked with its disks as they are
)

// MetalHostStatus is what Slipway knows of a host.
type MetalHostStatus struct {
	// phase is the host's state, for people.
	// +optional
	Phase HostPhase `json:"phase,omitempty"`
	// conditions tell more.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration of the spec that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// inventoryRevision of the row that is shown.
	// +optional
	InventoryRevision int64 `json:"inventoryRevision,omitempty"`
	// adopted is true for a host whose system ran before Slipway knew it.
	// +optional
	Adopted *bool `json:"adopted,omitempty"`
	// power as last read.
	// +optional
	Power PowerState `json:"power,omitempty"`
	// lastSeen is when the host was heard; written every five minutes at most.
	// +optional
	LastSeen *metav1.Time `json:"lastSeen,omitempty"`
	// bootMAC is the port it boots from.
	// +optional
	// +kubebuilder:validation:MaxLength=17
	BootMAC string `json:"bootMAC,omitempty"`
	// addresses of the host.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Addresses []Address `json:"addresses,omitempty"`
	// claim is what has the host.
	// +optional
	Claim *HostClaim `json:"claim,omitempty"`
	// hardware as last inspected.
	// +optional
	Hardware *Hardware `json:"hardware,omitempty"`
}

// HostPhase is the state of a host.
// +kubebuilder:validation:Enum=Discovered;Inspecting;Available;Installing;Active;Releasing;Cleaning;Failed
type HostPhase string

// The values of HostPhase.
const (
	HostDiscovered HostPhase = "Discovered"
	HostInspecting HostPhase = "Inspecting"
	HostAvailable  HostPhase = "Available"
	HostInstalling HostPhase = "Installing"
	HostActive     HostPhase = "Active"
	HostReleasing  HostPhase = "Releasing"
	HostCleaning   HostPhase = "Cleaning"
	HostFailed     HostPhase = "Failed"
)

// PowerState is whether a host is on.
// +kubebuilder:validation:Enum=On;Off;Unknown
type PowerState string

// The values of PowerState.
const (
	PowerOn      PowerState = "On"
	PowerOff     PowerState = "Off"
	PowerUnknown PowerState = "Unknown"
)

// HostClaim says what has a host.
type HostClaim struct {
	// id of the claim; left out when the machine is not of this cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id,omitempty"`
	// kind of the object; Machine for one of Slipway's own.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`
	// namespace of the object.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// clusterName is the Cluster of Cluster API that the object belongs to, or the attachment of another cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ClusterName string `json:"clusterName,omitempty"`
}
