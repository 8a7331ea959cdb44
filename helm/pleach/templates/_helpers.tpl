{{/* Names. A worker's is its pod's, and has no dots. */}}
{{- define "pleach.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $full .Values.fullnameOverride | replace "." "-" | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "pleach.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "pleach.selector" . }}
{{- end }}

{{- define "pleach.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "pleach.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end }}

{{/* Ports: those of pleach itself, and the one where workers give regions to each other. */}}
{{- define "pleach.port.workers" -}}7117{{- end }}
{{- define "pleach.port.api" -}}7118{{- end }}
{{- define "pleach.port.exchange" -}}7119{{- end }}
{{- define "pleach.port.metrics" -}}7120{{- end }}

{{- define "pleach.secret.authority" -}}
{{- if eq .Values.authority.source "secret" -}}
{{ required "authority.secret: empty; authority.source \"secret\" requires the name of a secret" .Values.authority.secret }}
{{- else -}}
{{ include "pleach.fullname" . }}-authority
{{- end -}}
{{- end }}

{{/* The authority's three files, wherever they come from. */}}
{{- define "pleach.volume.authority" -}}
- name: authority
  projected:
    defaultMode: 0440
    sources:
      {{- if eq .Values.authority.source "cert-manager" }}
      - secret:
          name: {{ include "pleach.fullname" . }}-ca-key
          items:
            - {key: tls.crt, path: ca.pem}
            - {key: tls.key, path: ca-key.pem}
      - secret:
          name: {{ include "pleach.secret.authority" . }}
          {{- if .optional }}
          optional: true
          {{- end }}
          items:
            - {key: token-key, path: token-key}
      {{- else }}
      - secret:
          name: {{ include "pleach.secret.authority" . }}
          {{- if and .optional (eq .Values.authority.source "job") }}
          optional: true
          {{- end }}
          items:
            - {key: ca.pem, path: ca.pem}
            - {key: ca-key.pem, path: ca-key.pem}
            - {key: token-key, path: token-key}
      {{- end }}
{{- end }}

{{/* Security contexts, without the fields that are null. */}}
{{- define "pleach.podSecurity" -}}
{{- include "pleach.withoutNulls" .Values.podSecurityContext -}}
{{- end }}

{{- define "pleach.containerSecurity" -}}
{{- include "pleach.withoutNulls" .Values.securityContext -}}
{{- end }}

{{- define "pleach.withoutNulls" -}}
{{- $fields := dict -}}
{{- range $name, $value := . -}}
{{- if not (kindIs "invalid" $value) }}{{- $_ := set $fields $name $value -}}{{ end -}}
{{- end -}}
{{- toYaml $fields -}}
{{- end }}

{{/* Labels of a pod besides the selector labels; called with the part of the values, and its name for messages. */}}
{{- define "pleach.podLabels" -}}
{{- $what := .what -}}
{{- range $name := list "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/component" "pleach-pool" -}}
{{- if hasKey $.of.podLabels $name }}{{ fail (printf "%s: podLabels has %s, a selector label of the chart; any other name is allowed" $what $name) }}{{ end -}}
{{- end -}}
{{- with .of.podLabels }}{{ toYaml . }}{{ end -}}
{{- end }}

{{/* extraEnv; called with the names that the chart sets itself as well. */}}
{{- define "pleach.extraEnv" -}}
{{- $names := .own -}}
{{- $what := .what -}}
{{- range .of.extraEnv -}}
{{- if has .name $names }}{{ fail (printf "%s: extraEnv sets %s, which is already set; any other name is allowed" $what .name) }}{{ end -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- with .of.extraEnv }}{{ toYaml . }}{{ end -}}
{{- end }}

{{- define "pleach.extraVolumes" -}}
{{- $names := list "authority" "certs" "join" "lustre" "pools" "ssd" "state" "tiers" "tmp" -}}
{{- $what := .what -}}
{{- range .of.extraVolumes -}}
{{- if or (has .name $names) (hasPrefix "input-" .name) }}{{ fail (printf "%s: extraVolumes has %s, which already exists; any other name is allowed" $what .name) }}{{ end -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- with .of.extraVolumes }}{{ toYaml . }}{{ end -}}
{{- end }}

{{- define "pleach.extraVolumeMounts" -}}
{{- with .extraVolumeMounts }}{{ toYaml . }}{{ end -}}
{{- end }}

{{/* How pods spread; a constraint without a selector gets the given labels. */}}
{{- define "pleach.spread" -}}
{{- $labels := .labels -}}
{{- with .of.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range . }}
  - {{- ternary . (set (deepCopy .) "labelSelector" (dict "matchLabels" $labels)) (hasKey . "labelSelector") | toYaml | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Where a pod may run; called with a part of the values. */}}
{{- define "pleach.placement" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- $tolerations := .tolerations }}
{{- with .accelerators }}
{{- if .count }}
{{- $tolerations = append $tolerations (dict "key" .resource "operator" "Exists" "effect" "NoSchedule") }}
{{- end }}
{{- end }}
{{- with $tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- end }}

{{- define "pleach.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Input folders: the mounts, and the volumes. */}}
{{- define "pleach.inputMounts" -}}
{{- range .Values.inputs }}
- name: input-{{ .name }}
  mountPath: {{ .path | quote }}
  readOnly: true
{{- end }}
{{- end }}
{{- define "pleach.inputVolumes" -}}
{{- range .Values.inputs }}
- name: input-{{ .name }}
  {{- include "pleach.claimOrHostPath" (dict "of" . "what" (printf "inputs, %s" .name) "readOnly" true) | nindent 2 }}
{{- end }}
{{- end }}

{{- define "pleach.claimOrHostPath" -}}
{{- $claim := .of.claim | default "" -}}
{{- $hostPath := .of.hostPath | default "" -}}
{{- if and $claim $hostPath }}{{ fail (printf "%s: claim and hostPath are both set; only one of them is allowed" .what) }}{{ end -}}
{{- if not (or $claim $hostPath) }}{{ fail (printf "%s: claim and hostPath are both empty; one of them is required" .what) }}{{ end -}}
{{- if $claim -}}
persistentVolumeClaim:
  claimName: {{ $claim | quote }}
  {{- if .readOnly }}
  readOnly: true
  {{- end }}
{{- else -}}
hostPath:
  path: {{ $hostPath | quote }}
  type: Directory
{{- end -}}
{{- end }}

{{/* 20Gi is 20480: a size as Kubernetes has it, in MiB. */}}
{{- define "pleach.mebibytes" -}}
{{- $number := regexFind "^[0-9]+" . | int64 -}}
{{- $unit := regexFind "[A-Z]i$" . -}}
{{- $factor := get (dict "Mi" 1 "Gi" 1024 "Ti" 1048576) $unit | int64 -}}
{{- mul $number $factor -}}
{{- end }}

{{/* The pools with their defaults, as JSON, under "pools". */}}
{{- define "pleach.pools" -}}
{{- $pools := list -}}
{{- $names := list -}}
{{- range .Values.workerPools -}}
{{- if has .name $names }}{{ fail (printf "workerPools: two pools are named %q; names must be unique" .name) }}{{ end -}}
{{- if eq .name "manager" }}{{ fail "workerPools: a pool is named \"manager\", a reserved name; any other name is allowed" }}{{ end -}}
{{- $names = append $names .name -}}
{{- $pool := mustMergeOverwrite (deepCopy $.Values.workerDefaults) (deepCopy .) -}}
{{- $scaling := $pool.autoscaling -}}
{{- if gt (int $scaling.min) (int $scaling.max) }}{{ fail (printf "workerPools, %s: autoscaling.min is %v; at most autoscaling.max, %v, is allowed" .name $scaling.min $scaling.max) }}{{ end -}}
{{- if and (eq $scaling.kind "hpa") (lt (int $scaling.min) 1) }}{{ fail (printf "workerPools, %s: autoscaling.min is 0; hpa allows 1 or more, manager and keda 0 or more" .name) }}{{ end -}}
{{- if and $scaling.query (ne $scaling.kind "keda") }}{{ fail (printf "workerPools, %s: autoscaling.query is set, and autoscaling.kind is %s; one party scales a pool, and only keda has a query" .name $scaling.kind) }}{{ end -}}
{{- if and (eq $scaling.kind "keda") (not $.Values.monitoring.prometheusAddress) }}{{ fail (printf "monitoring.prometheusAddress: empty; pool %s with autoscaling.kind keda requires the address of Prometheus" .name) }}{{ end -}}
{{- if and (eq (toString $pool.maxSurge) "0") (eq (toString $pool.maxUnavailable) "0") }}{{ fail (printf "workerPools, %s: maxSurge and maxUnavailable are both 0; one of them must be above 0" .name) }}{{ end -}}
{{- $pools = append $pools $pool -}}
{{- end -}}
{{- dict "pools" $pools | toJson -}}
{{- end }}
