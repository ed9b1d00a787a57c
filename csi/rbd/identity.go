package rbd

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// DriverName is the driver's name in CSIDriver and StorageClass objects.
const DriverName = "rbd.custody.dev"

// Identity answers what the driver is.
type Identity struct {
	csi.UnimplementedIdentityServer
	Name    string // DriverName if empty
	Version string
	// Controller tells that this process serves the Controller service too.
	Controller bool
	// Ready tells whether the driver can work. nil: it can. The cluster's state is no part of it: a restart of the
	// driver mends no cluster.
	Ready func(context.Context) error
}

// GetPluginInfo implements [csi.IdentityServer].
func (i *Identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	name := i.Name
	if name == "" {
		name = DriverName
	}
	return &csi.GetPluginInfoResponse{Name: name, VendorVersion: i.Version}, nil
}

// GetPluginCapabilities implements [csi.IdentityServer].
func (i *Identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	all := []*csi.PluginCapability{{Type: &csi.PluginCapability_VolumeExpansion_{
		VolumeExpansion: &csi.PluginCapability_VolumeExpansion{Type: csi.PluginCapability_VolumeExpansion_ONLINE},
	}}}
	if i.Controller {
		all = append(all, &csi.PluginCapability{Type: &csi.PluginCapability_Service_{
			Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE},
		}})
	}
	return &csi.GetPluginCapabilitiesResponse{Capabilities: all}, nil
}

// Probe implements [csi.IdentityServer].
func (i *Identity) Probe(ctx context.Context, _ *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	if i.Ready != nil {
		if err := i.Ready(ctx); err != nil {
			return nil, failedPrecondition("the driver is not ready: %v", err)
		}
	}
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}
