{{/* The tiers of a pool's workers, fast ones first; nothing where there are none. A part of the disk is for input files. */}}
{{- define "pleach.tiers" -}}
{{- $tiers := list -}}
{{- if ne .pool.ssd.kind "none" -}}
{{- $tiers = append $tiers (include "pleach.tier.ssd" .) -}}
{{- end -}}
{{- if and .root.Values.lustre.enabled .pool.lustre -}}
{{- $tiers = append $tiers (include "pleach.tier.lustre" .) -}}
{{- end -}}
{{- if and .root.Values.objectStore.enabled .pool.objectStore -}}
{{- $tiers = append $tiers (include "pleach.tier.objectStore" .) -}}
{{- end -}}
{{- join "\n" $tiers -}}
{{- end }}

{{/* The pools that are scaled, as the manager knows them; nothing where none is. */}}
{{- define "pleach.scaled" -}}
{{- $full := include "pleach.fullname" . -}}
{{- range (include "pleach.pools" . | fromJson).pools -}}
{{- if ne .autoscaling.kind "none" }}
[[pool]]
name = "{{ .name }}"
workers = "{{ $full }}-{{ .name }}-"
cores = {{ .cpu }}
price_per_hour = {{ .autoscaling.pricePerHour }}
billing_seconds = {{ .autoscaling.billingSeconds }}
startup_seconds = {{ .autoscaling.startupSeconds }}
min = {{ .autoscaling.min }}
max = {{ .autoscaling.max }}
{{- if eq .autoscaling.kind "manager" }}
[pool.provision]
driver = "kubernetes"
deployment = "{{ $full }}-{{ .name }}"
idle_seconds = {{ .autoscaling.idleSeconds }}
{{- end }}
{{ end -}}
{{- end -}}
{{- end }}

{{/* The deployments that the manager scales itself, as a JSON list. */}}
{{- define "pleach.scaledByManager" -}}
{{- $full := include "pleach.fullname" . -}}
{{- $names := list -}}
{{- range (include "pleach.pools" . | fromJson).pools -}}
{{- if eq .autoscaling.kind "manager" }}{{- $names = append $names (printf "%s-%s" $full .name) }}{{ end -}}
{{- end -}}
{{- toJson $names -}}
{{- end }}

{{/* "true" where the manager sets deletion costs: some pool gets smaller. */}}
{{- define "pleach.deletionCost" -}}
{{- $byManager := include "pleach.scaledByManager" . | fromJsonArray -}}
{{- or $byManager (and .Values.manager.podDeletionCost (include "pleach.scaled" . | trim)) | empty | ternary "" "true" -}}
{{- end }}

{{- define "pleach.tier.ssd" -}}
[[tier]]
kind = "ssd"
path = "/var/cache/pleach/regions"
capacity = "{{ div (mul 3 (include "pleach.mebibytes" .pool.ssd.size)) 4 }}MiB"
{{- end }}

{{- define "pleach.tier.lustre" -}}
[[tier]]
kind = "lustre"
path = "/var/cache/pleach/lustre"
capacity = "{{ include "pleach.mebibytes" .root.Values.lustre.capacity }}MiB"
{{- end }}

{{- define "pleach.tier.objectStore" -}}
[[tier]]
kind = "s3"
{{- with .root.Values.objectStore }}
bucket = {{ required "objectStore.bucket: empty; objectStore.enabled requires the name of a bucket" .bucket | quote }}
{{- with .endpoint }}
endpoint = {{ . | quote }}
{{- end }}
{{- with .region }}
region = {{ . | quote }}
{{- end }}
{{- with .prefix }}
prefix = {{ . | quote }}
{{- end }}
capacity = "{{ include "pleach.mebibytes" .capacity }}MiB"
{{- end }}
{{- end }}
