{{- /* What the driver's containers of controller and node have in common. Takes root. */ -}}
{{- define "custody.rbd.container" -}}
{{- $i := .Values.rbd.image -}}
{{- $image := mergeOverwrite (deepCopy .Values.image) (dict "repository" (default .Values.image.repository $i.repository) "tag" (default .Values.image.tag $i.tag) "digest" (default .Values.image.digest $i.digest)) -}}
image: {{ include "custody.image" (dict "Values" (dict "image" $image) "Chart" .Chart) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
env:
- name: POD_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
- name: NODE_NAME
  valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
{{- end -}}

{{- define "custody.rbd.args" -}}
- --driver-name={{ .Values.rbd.driverName }}
- --config=/etc/custody/clusters.yaml
- --log-level={{ .Values.log.level }}
- --log-format={{ .Values.log.format }}
{{- end -}}

{{- define "custody.rbd.mounts" -}}
- {name: clusters, mountPath: /etc/custody/clusters.yaml, subPath: clusters.yaml, readOnly: true}
- {name: keys, mountPath: /etc/custody/keys, readOnly: true}
{{- end -}}

{{- /* Keys are not mounted by subPath: a Secret that changes is to be seen without a restart. Takes root and keys. */ -}}
{{- define "custody.rbd.volumes" -}}
- name: clusters
  configMap: {name: {{ include "custody.fullname" .root }}-rbd-clusters}
- name: keys
  secret:
    secretName: {{ required (printf "rbd.%s is not set: name the Secret with the keys of the Ceph users (docs/rbd.md)" .keys) (index .root.Values.rbd .keys) }}
    defaultMode: 0440
{{- end -}}
