// Package v1alpha1 holds the kinds of metal.slipway.dev: MetalHost, MetalPool, MetalMachine and JoinTarget, and the names
// of their conditions, labels and annotations. It is shape only: package standalone acts on the objects.
//
// +kubebuilder:object:generate=true
// +groupName=metal.slipway.dev
package v1alpha1
