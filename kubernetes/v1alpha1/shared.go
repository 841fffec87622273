package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Placement says which hosts a machine may be given, and which are better.
// +kubebuilder:validation:XValidation:rule="!has(self.hostName) || !(has(self.pool) || has(self.selector) || has(self.requirements))",message="hostName takes exactly that host: leave pool, selector and requirements out"
// +kubebuilder:validation:XValidation:rule="!has(self.hostName) || !(has(self.preferred) || has(self.reuse) && self.reuse != 'Any')",message="hostName takes exactly that host: leave preferred and reuse out"
type Placement struct {
	// hostName pins the machine to one MetalHost. It excludes pool, selector, requirements, preferred and reuse.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	HostName string `json:"hostName,omitempty"`
	// pool takes only hosts of that MetalPool.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Pool string `json:"pool,omitempty"`
	// selector takes only hosts with matching labels.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// requirements are what a host must have at least.
	// +optional
	Requirements *HardwareRequirements `json:"requirements,omitempty"`
	// preferred makes matching hosts better, by weight.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Preferred []PreferredHosts `json:"preferred,omitempty"`
	// tolerations let the machine have hosts with taints.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Tolerations []Toleration `json:"tolerations,omitempty"`
	// failureDomainPolicy says whether the machine's failure domain is a condition or a wish.
	// +optional
	// +kubebuilder:default=Required
	FailureDomainPolicy FailureDomainPolicy `json:"failureDomainPolicy,omitempty"`
	// reuse says whether the host that an earlier machine of the same owner had is taken again.
	// +optional
	Reuse Reuse `json:"reuse,omitempty"`
}

// PreferredHosts makes hosts better that match a selector.
type PreferredHosts struct {
	// weight is 1 to 100; those of all matching entries are added up.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`
	// selector matches labels of hosts.
	// +required
	Selector metav1.LabelSelector `json:"selector"`
}

// Toleration lets a machine have a host with a taint.
// +kubebuilder:validation:XValidation:rule="!has(self.operator) || self.operator != 'Exists' || !has(self.value)",message="operator Exists has no value"
// +kubebuilder:validation:XValidation:rule="has(self.operator) && self.operator == 'Exists' || has(self.value) && has(self.key)",message="operator Equal needs a key and a value: write operator: Exists to tolerate every value"
type Toleration struct {
	// key of the taint; all taints when empty.
	// +optional
	// +kubebuilder:validation:MaxLength=316
	Key string `json:"key,omitempty"`
	// operator says whether the value has to be equal.
	// +optional
	Operator TolerationOperator `json:"operator,omitempty"`
	// value of the taint, for the operator Equal.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Value string `json:"value,omitempty"`
}

// TolerationOperator says how a toleration's value is compared; Equal when empty.
// +kubebuilder:validation:Enum=Exists;Equal
type TolerationOperator string

// The values of TolerationOperator.
const (
	TolerationExists TolerationOperator = "Exists"
	TolerationEqual  TolerationOperator = "Equal"
)

// FailureDomainPolicy says how hard a failure domain is.
// +kubebuilder:validation:Enum=Required;Preferred
type FailureDomainPolicy string

// The values of FailureDomainPolicy.
const (
	FailureDomainRequired  FailureDomainPolicy = "Required"
	FailureDomainPreferred FailureDomainPolicy = "Preferred"
)

// Reuse says how much a machine wants the host that its owner had before; Any when empty.
// +kubebuilder:validation:Enum=Any;PreferSame;RequireSame
type Reuse string

// The values of Reuse.
const (
	ReuseAny     Reuse = "Any"
	ReusePrefer  Reuse = "PreferSame"
	ReuseRequire Reuse = "RequireSame"
)

// HardwareRequirements are what a host must have at least.
type HardwareRequirements struct {
	// architecture of the processors.
	// +optional
	Architecture Architecture `json:"architecture,omitempty"`
	// minCPUThreads counts the threads of all processors.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinCPUThreads int32 `json:"minCPUThreads,omitempty"`
	// minMemory is the least memory.
	// +optional
	MinMemory *resource.Quantity `json:"minMemory,omitempty"`
	// minDisks counts disks.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinDisks int32 `json:"minDisks,omitempty"`
	// minDiskSize is the least size of one disk.
	// +optional
	MinDiskSize *resource.Quantity `json:"minDiskSize,omitempty"`
	// diskRotational asks for a disk that turns, or for one that does not.
	// +optional
	DiskRotational *bool `json:"diskRotational,omitempty"`
	// minNICSpeedMbps is the least speed of one network port.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinNICSpeedMbps int32 `json:"minNICSpeedMbps,omitempty"`
	// acceleratorVendor is a vendor id, or vendor:device, in hex as PCI has them: 10de.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	AcceleratorVendor string `json:"acceleratorVendor,omitempty"`
	// minAccelerators counts accelerators, those of acceleratorVendor when that is set.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinAccelerators int32 `json:"minAccelerators,omitempty"`
	// expression is CEL over host, which is its hardware and labels: host.cpu.threads > 16.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Expression string `json:"expression,omitempty"`
}

// Architecture is a processor architecture as Kubernetes names it, of those that Slipway installs.
// +kubebuilder:validation:Enum=amd64;arm64
type Architecture string

// The values of Architecture.
const (
	AMD64 Architecture = "amd64"
	ARM64 Architecture = "arm64"
)

// OSSpec says which operating system is installed.
type OSSpec struct {
	// profile is the name of a Slipway profile.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Profile string `json:"profile"`
	// version is the name of an image that is installed instead of the profile's own.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version,omitempty"`
	// variables are given to the profile's templates. They are no place for secrets.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Variables map[string]string `json:"variables,omitempty"`
	// kernelArgs are added to those of the profile.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=1024
	KernelArgs []string `json:"kernelArgs,omitempty"`
}

// Address is one address of a host or machine.
type Address struct {
	// type of the address.
	// +required
	Type AddressType `json:"type"`
	// address is a name or an IP address.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Address string `json:"address"`
}

// AddressType says what an address is good for.
// +kubebuilder:validation:Enum=Hostname;ExternalIP;InternalIP;ExternalDNS;InternalDNS
type AddressType string

// The values of AddressType.
const (
	AddressHostname    AddressType = "Hostname"
	AddressExternalIP  AddressType = "ExternalIP"
	AddressInternalIP  AddressType = "InternalIP"
	AddressExternalDNS AddressType = "ExternalDNS"
	AddressInternalDNS AddressType = "InternalDNS"
)

// WantedVersions are those of the programs that make a node of a join target.
type WantedVersions struct {
	// kubelet is the version of the kubelet: v1.36.3.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^v?\d+\.\d+\.\d+([-+].*)?$`
	Kubelet string `json:"kubelet,omitempty"`
	// controlPlane is the version of API server, scheduler and controller manager; kubeadm installs them in the kubelet's.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^v?\d+\.\d+\.\d+([-+].*)?$`
	ControlPlane string `json:"controlPlane,omitempty"`
	// containerRuntime runs the containers.
	// +optional
	ContainerRuntime WantedRuntime `json:"containerRuntime,omitempty,omitzero"`
}

// WantedRuntime is what shall run containers. Its version is the profile's.
type WantedRuntime struct {
	// name of the runtime.
	// +optional
	Name RuntimeName `json:"name,omitempty"`
}

// RuntimeName is a container runtime whose socket kubeadm gets.
// +kubebuilder:validation:Enum=containerd;cri-o;cri-dockerd
type RuntimeName string

// The values of RuntimeName.
const (
	RuntimeContainerd RuntimeName = "containerd"
	RuntimeCRIO       RuntimeName = "cri-o"
	RuntimeCRIDockerd RuntimeName = "cri-dockerd"
)

// Versions are those of the programs that run on a node.
type Versions struct {
	// kubelet is the version of the kubelet: v1.36.3.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Kubelet string `json:"kubelet,omitempty"`
	// controlPlane is the version of API server, scheduler and controller manager.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ControlPlane string `json:"controlPlane,omitempty"`
	// containerRuntime runs the containers.
	// +optional
	ContainerRuntime ContainerRuntime `json:"containerRuntime,omitempty,omitzero"`
	// osImage is the operating system.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	OSImage string `json:"osImage,omitempty"`
}

// ContainerRuntime is what runs containers.
type ContainerRuntime struct {
	// name of the runtime: containerd, cri-o.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name,omitempty"`
	// version of the runtime.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`
}

// SecretReference names a Secret anywhere in the cluster.
type SecretReference struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// namespace of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
}

// SecretKeySelector names one key of a Secret in the object's own namespace.
type SecretKeySelector struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// key in the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// SecretName names a Secret in the object's own namespace.
type SecretName struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// HostReference names the host that a machine has.
type HostReference struct {
	// name of the MetalHost.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// inventoryID of the host in Slipway.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	InventoryID string `json:"inventoryID,omitempty"`
}

// Initialization says how far the first provisioning is. Under Cluster API it is part of the contract.
// +kubebuilder:validation:MinProperties=1
type Initialization struct {
	// provisioned is true once the installed system has booted with its configuration. It never turns false again.
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}

// CleanPolicy says how disks are wiped when a machine goes.
// +kubebuilder:validation:Enum=None;Quick;Full;Secure
type CleanPolicy string

// The values of CleanPolicy.
const (
	CleanNone   CleanPolicy = "None"
	CleanQuick  CleanPolicy = "Quick"
	CleanFull   CleanPolicy = "Full"
	CleanSecure CleanPolicy = "Secure"
)

// ReleaseAfter says when a deleted machine is gone; Fenced when empty.
// +kubebuilder:validation:Enum=Fenced;Cleaned
type ReleaseAfter string

// The values of ReleaseAfter.
const (
	ReleaseFenced  ReleaseAfter = "Fenced"  // once its old system cannot run any more
	ReleaseCleaned ReleaseAfter = "Cleaned" // once its host is wiped
)
