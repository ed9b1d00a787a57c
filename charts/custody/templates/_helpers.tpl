{{- define "custody.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Labels that select a program's Pods. Takes root and component. */ -}}
{{- define "custody.selector" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "custody.labels" -}}
{{ include "custody.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "custody.image" -}}
{{- $i := .Values.image -}}
{{- $repository := required "image.repository is not set: no image of Custody is published, so build one from the Dockerfile, push it, and say where it is" $i.repository -}}
{{- if $i.digest -}}
{{- printf "%s@%s" $repository $i.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (default .Chart.AppVersion $i.tag) -}}
{{- end -}}
{{- end -}}

{{- /* The drivers with their defaults filled in, as YAML of a map by name. */ -}}
{{- define "custody.drivers" -}}
{{- $all := dict -}}
{{- range $name, $given := .Values.drivers -}}
{{- $d := mergeOverwrite (deepCopy $.Values.driverDefaults) (deepCopy (default dict $given)) -}}
{{- if $d.enabled -}}
{{- $sa := $d.serviceAccount -}}
{{- if and (not $sa.create) (not $sa.name) -}}{{- fail (printf "drivers.%s.serviceAccount.create is false: say with name whose account it is" $name) -}}{{- end -}}
{{- if and $sa.create $sa.namespace (ne $sa.namespace $.Release.Namespace) -}}{{- fail (printf "drivers.%s.serviceAccount.namespace is another one than the release's: set create to false and make the account there yourself" $name) -}}{{- end -}}
{{- if and $d.deploy $sa.namespace (ne $sa.namespace $.Release.Namespace) -}}{{- fail (printf "drivers.%s: a Pod of this release can't have an account of the namespace %s: set deploy to false" $name $sa.namespace) -}}{{- end -}}
{{- if and $d.s3 $d.container -}}{{- fail (printf "drivers.%s has both s3 and container: leave one out" $name) -}}{{- end -}}
{{- if and $d.deploy (not $d.s3) (not $d.container) -}}{{- fail (printf "drivers.%s has neither s3 nor container: give one, or set deploy to false" $name) -}}{{- end -}}
{{- $_ := set $sa "name" (default (printf "%s-%s" (include "custody.fullname" $) $name) $sa.name) -}}
{{- $_ := set $sa "namespace" (default $.Release.Namespace $sa.namespace) -}}
{{- $_ := set $all $name $d -}}
{{- end -}}
{{- end -}}
{{- toYaml $all -}}
{{- end -}}

{{- /* The roles of a generated file, as its rules are there, under names of this release.
Takes root, file and name. The bindings are made by custody.bindings. */ -}}
{{- define "custody.roles" -}}
{{- $c := . -}}
{{- range $text := splitList "\n---\n" (print "\n" (.root.Files.Get .file)) -}}
{{- $role := fromYaml $text -}}
{{- if $role.kind }}
---
apiVersion: {{ $role.apiVersion }}
kind: {{ $role.kind }}
metadata:
  name: {{ $c.name }}
{{- if eq $role.kind "Role" }}
  namespace: {{ $c.root.Release.Namespace }}
{{- end }}
  labels:
    {{- include "custody.labels" (dict "root" $c.root "component" "rbac") | nindent 4 }}
rules:
{{ toYaml $role.rules }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Gives an account both roles of a name. Takes root, role, name and account. */ -}}
{{- define "custody.bindings" -}}
{{- $c := . -}}
{{- range $kind := list "ClusterRole" "Role" }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ $c.name }}
{{- if eq $kind "Role" }}
  namespace: {{ $c.root.Release.Namespace }}
{{- end }}
  labels:
    {{- include "custody.labels" (dict "root" $c.root "component" "rbac") | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ $c.role }}
subjects:
- kind: ServiceAccount
  name: {{ $c.account.name }}
  namespace: {{ $c.account.namespace }}
{{- end -}}
{{- end -}}

{{- /* What the containers of controller and sidecar have in common. Takes root. */ -}}
{{- define "custody.container" -}}
image: {{ include "custody.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  {{- toYaml .root.Values.containerSecurityContext | nindent 2 }}
env:
- name: POD_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
ports:
- {name: metrics, containerPort: 8080}
- {name: health, containerPort: 8081}
livenessProbe:
  httpGet: {path: /healthz, port: health}
  periodSeconds: 10
  failureThreshold: 6
{{- end -}}

{{- /* What the Pods have in common. Takes root and pod. */ -}}
{{- define "custody.scheduling" -}}
{{- with .root.Values.imagePullSecrets -}}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- range $key := list "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" }}
{{- with index $.pod $key }}
{{ $key }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* Service, ServiceMonitor and PodDisruptionBudget. Takes root, component, name and replicas. */ -}}
{{- define "custody.around" -}}
{{- $metrics := .root.Values.metrics -}}
{{- if or $metrics.service $metrics.serviceMonitor.enabled }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .name }}-metrics
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "custody.labels" . | nindent 4 }}
spec:
  ports:
  - {name: metrics, port: 8080, targetPort: metrics}
  selector:
    {{- include "custody.selector" . | nindent 4 }}
{{- end }}
{{- if $metrics.serviceMonitor.enabled }}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "custody.labels" . | nindent 4 }}
    {{- with $metrics.serviceMonitor.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  endpoints:
  - port: metrics
    interval: {{ $metrics.serviceMonitor.interval }}
  selector:
    matchLabels:
      {{- include "custody.selector" . | nindent 6 }}
{{- end }}
{{- if and .root.Values.podDisruptionBudget (gt (int .replicas) 1) }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "custody.labels" . | nindent 4 }}
spec:
  minAvailable: 1
  selector:
    matchLabels:
      {{- include "custody.selector" . | nindent 6 }}
{{- end }}
{{- end -}}
