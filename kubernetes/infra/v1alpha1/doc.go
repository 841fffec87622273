// Package v1alpha1 holds Slipway's kinds of infrastructure.cluster.x-k8s.io: what stock Cluster API's contract v1beta2 asks
// of an infrastructure provider. It is shape only: package clusterapi acts on the objects.
//
// The labels clusterctl.cluster.x-k8s.io are those of clusterctl init. Without them, clusterctl move leaves a kind behind,
// and an attached cluster never saw clusterctl init. A remediation template has no owner, so that its kind says that it is
// moved.
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.cluster.x-k8s.io
package v1alpha1
